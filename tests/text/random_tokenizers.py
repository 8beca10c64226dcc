# SPDX-License-Identifier: Apache-2.0
"""Tokenizers put together at random and trained by PyPI's `tokenizers`, and texts for them: for random_tokenizers_long_test.py."""
import random

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

BEHAVIOURS = ["removed", "isolated", "merged_with_previous", "merged_with_next", "contiguous"]
SPECIAL = ["<s>", "</s>", "<pad>", "<unk>", "[MASK]"]
PIECES = ["the", "The", "quick", "brown", " fox", "  two", "\tTab", "\n", "\r\n", "don't", "I'LL", "we've", "12345", "3.14", "1,000", "naïve",
          "café", "cafe\u0301", "Straße", "İstanbul", "ﬁne", "Ångström", "A\u030angstrom", "Ωμέγα", "Привет", "мир", "日本語", "漢字かな", "カタカナー",
          "한국어", "각", "\u1112\u1161\u11ab", "العربية", "हिन्दी", "ไทย", "😀", "👩‍👩‍👧", "🇩🇪", "e\u0301\u0323", "\u00a0", "\u200b",
          "\u3000", "\u2028", "…", "—", "“quoted”", "(x)", "[y]", "a_b", "C++", "##x", "▁", "Ġ", "<s>", "</s>", "<pad>", "<unk>", "[MASK]",
          " [MASK] ", "<|x|>", "newword", "NEWWORD", "new word", "anewwordb", "½", "²", "Ⅳ", "ﷺ", "\ufeff", "\x01", "\x7f", "ß", "ẞ", "ŉ", "ǅ",
          ".", ",", "!", "?!", "...", "-", "--", "'", "''", "`", "$5", "€", "%", "&", "@", "#", "~", "=", "+", "/", "\\", "|", "^", "a" * 30, "xyz" * 45]


def texts(draw, count, special=True):
    pieces = PIECES if special else [piece for piece in PIECES if piece.strip() not in SPECIAL]
    result = ["", " ", "  ", "a", "\n"]
    while len(result) < count:
        words = [draw.choice(pieces) for _ in range(draw.randint(1, 14))]
        result.append(draw.choice([" ", " ", " ", "", "  "]).join(words))
    return result


def one_normalizer(draw):
    kind = draw.randrange(14)
    if kind < 4:
        return [normalizers.NFC, normalizers.NFD, normalizers.NFKC, normalizers.NFKD][kind]()
    if kind == 4:
        return normalizers.Lowercase()
    if kind == 5:
        return normalizers.Strip(left=draw.random() < 0.7, right=draw.random() < 0.7)
    if kind == 6:
        return normalizers.StripAccents()
    if kind == 7:
        return normalizers.Replace(draw.choice(["a", " ", "''", "the"]), draw.choice(["", "▁", "xx", "é"]))
    if kind == 8:
        return normalizers.Replace(Regex(draw.choice([r"\s+", r" {2,}", r"[0-9]+", r"\p{P}", r"(``|'')", r"[^\w\s]"])), draw.choice(["", " ", "_", "##"]))
    if kind == 9:
        return normalizers.Prepend(draw.choice(["▁", " ", "ab"]))
    if kind in (10, 11):
        return normalizers.BertNormalizer(clean_text=draw.random() < 0.8, handle_chinese_chars=draw.random() < 0.7,
                                          strip_accents=draw.choice([None, True, False]), lowercase=draw.random() < 0.6)
    if kind == 12:
        return normalizers.Nmt()
    return normalizers.NFKC()


def normalizer(draw):
    if draw.random() < 0.25:
        return None
    if draw.random() < 0.5:
        return one_normalizer(draw)
    return normalizers.Sequence([one_normalizer(draw) for _ in range(draw.randint(1, 3))])


PATTERNS = [r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+",
            r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
            r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
            r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
            r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
            r"\s+", r"\w+|[^\w\s]+", r"\d", r"[\s,.]", r"\p{N}{1,3}(?=(?:\p{N}{3})*\b)", r" ?[^(\s|[.,!?…。，、।۔،])]+", r"[\r\n]", r"\s?\p{L}+"]


def one_splitter(draw):
    kind = draw.randrange(13)
    if kind == 0:
        return pre_tokenizers.ByteLevel(add_prefix_space=draw.random() < 0.5, use_regex=draw.random() < 0.7)
    if kind == 1:
        return pre_tokenizers.Whitespace()
    if kind == 2:
        return pre_tokenizers.WhitespaceSplit()
    if kind == 3:
        return pre_tokenizers.BertPreTokenizer()
    if kind == 4:
        return pre_tokenizers.Punctuation(draw.choice(BEHAVIOURS))
    if kind == 5:
        return pre_tokenizers.Digits(individual_digits=draw.random() < 0.5)
    if kind == 6:
        return pre_tokenizers.Metaspace(replacement=draw.choice(["▁", "_"]), prepend_scheme=draw.choice(["always", "first", "never"]),
                                        split=draw.random() < 0.7)
    if kind in (7, 8, 9):
        return pre_tokenizers.Split(Regex(draw.choice(PATTERNS)), draw.choice(BEHAVIOURS), invert=draw.random() < 0.3)
    if kind == 10:
        return pre_tokenizers.Split(draw.choice([" ", "a", "'"]), draw.choice(BEHAVIOURS), invert=draw.random() < 0.3)
    if kind == 11:
        return pre_tokenizers.CharDelimiterSplit(draw.choice(["-", " ", "e"]))
    return pre_tokenizers.FixedLength(length=draw.choice([1, 3, 8]))


def splitter(draw, kind):
    if kind == "byte":
        last = pre_tokenizers.ByteLevel(add_prefix_space=draw.random() < 0.4, use_regex=draw.random() < 0.6)
        return last if draw.random() < 0.5 else pre_tokenizers.Sequence([one_splitter(draw), last])
    if kind == "metaspace":
        return pre_tokenizers.Metaspace(prepend_scheme=draw.choice(["always", "first", "never"]), split=draw.random() < 0.7)
    if draw.random() < 0.5:
        return one_splitter(draw)
    return pre_tokenizers.Sequence([one_splitter(draw) for _ in range(draw.randint(1, 3))])


def model(draw, kind):
    """And its trainer."""
    size = draw.choice([300, 500, 900])
    if kind == "byte":
        made = models.BPE(ignore_merges=draw.random() < 0.3)
        return made, trainers.BpeTrainer(vocab_size=size, special_tokens=SPECIAL, show_progress=False,
                                         initial_alphabet=pre_tokenizers.ByteLevel.alphabet() if draw.random() < 0.8 else [])
    choice = draw.randrange(4)
    if choice == 0:
        fallback = draw.random() < 0.4
        prefix, suffix = draw.choice([(None, None), ("##", None), (None, "</w>"), (None, None)])
        if fallback:
            prefix = suffix = None
        keys = {key: value for key, value in (("continuing_subword_prefix", prefix), ("end_of_word_suffix", suffix)) if value}
        unknown = {"unk_token": "<unk>"} if draw.random() < 0.7 else {}
        made = models.BPE(fuse_unk=draw.random() < 0.5, byte_fallback=fallback, ignore_merges=draw.random() < 0.2, **unknown, **keys)
        extra = [f"<0x{i:02X}>" for i in range(256)] if fallback else []
        return made, trainers.BpeTrainer(vocab_size=size + len(extra), special_tokens=SPECIAL + extra, show_progress=False, limit_alphabet=60, **keys)
    if choice == 1:
        made = models.WordPiece(unk_token="<unk>", max_input_chars_per_word=draw.choice([100, 20]))
        return made, trainers.WordPieceTrainer(vocab_size=size, special_tokens=SPECIAL, show_progress=False, limit_alphabet=60)
    if choice == 2:
        return models.WordLevel(unk_token="<unk>"), trainers.WordLevelTrainer(vocab_size=size, special_tokens=SPECIAL, show_progress=False)
    return models.Unigram(), trainers.UnigramTrainer(vocab_size=size, special_tokens=SPECIAL, unk_token="<unk>", show_progress=False,
                                                     max_piece_length=draw.choice([16, 5]))


def processor(draw, kind, made):
    if draw.random() < 0.2:
        return None
    bos, eos = ("<s>", made.token_to_id("<s>")), ("</s>", made.token_to_id("</s>"))
    options = [lambda: processors.TemplateProcessing(single="<s> $A </s>", pair="<s> $A </s> $B:1 </s>:1", special_tokens=[bos, eos]),
               lambda: processors.TemplateProcessing(single="$A </s>", pair="$A </s> $B </s>", special_tokens=[bos, eos]),
               lambda: processors.TemplateProcessing(single="<s> $0", pair="<s> $B:2 </s>:1 $A:3", special_tokens=[bos, eos]),
               lambda: processors.BertProcessing(eos, bos),
               lambda: processors.RobertaProcessing(eos, bos, trim_offsets=draw.random() < 0.6, add_prefix_space=draw.random() < 0.5)]
    made_one = draw.choice(options)()
    if kind == "byte":
        byte_level = processors.ByteLevel(trim_offsets=draw.random() < 0.6, add_prefix_space=draw.random() < 0.5)
        return draw.choice([byte_level, made_one, processors.Sequence([byte_level, made_one])])
    return made_one


def decoder(draw, kind, made):
    if kind == "byte" and draw.random() < 0.8:
        return decoders.ByteLevel()
    choice = draw.randrange(9)
    if choice == 0:
        return decoders.WordPiece(prefix="##", cleanup=draw.random() < 0.5)
    if choice == 1:
        return decoders.Metaspace(prepend_scheme=draw.choice(["always", "first", "never"]))
    if choice == 2:
        return decoders.BPEDecoder(suffix="</w>")
    if choice == 3:
        return decoders.CTC(pad_token="<pad>", word_delimiter_token="|", cleanup=draw.random() < 0.5)
    if choice == 4:
        return decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", draw.choice([0, 1]), 0)])
    if choice == 5:
        return decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace()])
    if choice == 6:
        return decoders.Sequence([decoders.Replace(Regex(r"[aeiou]"), "_"), decoders.Fuse()])
    if choice == 7:
        return decoders.Fuse()
    return None


def tokenizer(seed, corpus):
    draw = random.Random(seed)
    kind = draw.choice(["byte", "metaspace", "other", "other"])
    core, trainer = model(draw, kind)
    made = Tokenizer(core)
    chosen = normalizer(draw)
    if chosen is not None:
        made.normalizer = chosen
    if kind != "other" or draw.random() < 0.9:
        made.pre_tokenizer = splitter(draw, kind)
    made.train_from_iterator(corpus, trainer)
    added = [AddedToken(word, single_word=draw.random() < 0.4, lstrip=draw.random() < 0.4, rstrip=draw.random() < 0.4,
                        normalized=draw.random() < 0.5, special=draw.random() < 0.3) for word in ("newword", "<|x|>", "Straße")]
    made.add_tokens(added[:draw.randint(0, 3)])
    if draw.random() < 0.3:
        made.add_special_tokens([AddedToken("[MASK]", lstrip=True)])
    chosen = processor(draw, kind, made)
    if chosen is not None:
        made.post_processor = chosen
    chosen = decoder(draw, kind, made)
    if chosen is not None:
        made.decoder = chosen
    if draw.random() < 0.4:
        length = draw.randint(4, 20)
        made.enable_truncation(length, stride=draw.choice([0, 0, 1, 2]), strategy=draw.choice(["longest_first", "only_first", "only_second"]),
                               direction=draw.choice(["right", "right", "left"]))
    if draw.random() < 0.4:
        made.enable_padding(direction=draw.choice(["right", "left"]), pad_id=made.token_to_id("<pad>"), pad_token="<pad>",
                            pad_type_id=draw.choice([0, 1]), length=draw.choice([None, None, 12]), pad_to_multiple_of=draw.choice([None, 4]))
    return made
