# SPDX-License-Identifier: Apache-2.0
"""Tokenizers put together at random (random_tokenizers.py) through mase.Tokenizer, against PyPI's `tokenizers`: ids, tokens, offsets,
kinds, masks, windows of what did not fit, pairs, batches, and back. MASE_TOKENIZERS of them (default 300), from the seed
MASE_TOKENIZERS_SEED (default 1) on; parts that ours refuses by name are counted. MASE_TRANSFORMERS_PYTHON names a Python that has
`tokenizers`; without, this one is tried."""
import collections
import glob
import os
import random
import subprocess
import sys
import tempfile

python = os.environ.get("MASE_TRANSFORMERS_PYTHON")
if python and os.path.abspath(python) != sys.executable and "MASE_AGAIN" not in os.environ:
    sys.exit(subprocess.run([python, sys.argv[0]], env={**os.environ, "MASE_AGAIN": "1"}).returncode)
TREE = os.path.join(os.environ["MASE_BUILD"], "python")
if os.environ.get("MASE_SANITIZE") or not glob.glob(os.path.join(TREE, "mase", "_native*.so")):
    print("skipped: the Python package was not built, or for sanitizers")
    sys.exit(77)
sys.path.insert(0, TREE)
try:
    import random_tokenizers as drawn
    import mase
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)


def of_theirs(e, tokenizer):
    # Their tokens are what stands in the text where added ones take spaces along; ours are always the vocabulary's.
    return {"ids": e.ids, "tokens": [tokenizer.id_to_token(i) for i in e.ids], "offsets": [list(pair) for pair in e.offsets], "type_ids": e.type_ids,
            "attention_mask": e.attention_mask, "special_tokens_mask": e.special_tokens_mask, "windows": [of_theirs(w, tokenizer) for w in e.overflowing]}


def of_ours(e):
    return {**{key: [list(pair) for pair in e[key]] if key == "offsets" else list(e[key]) for key in
               ("ids", "tokens", "offsets", "type_ids", "attention_mask", "special_tokens_mask")},
            "windows": [of_ours(w) for w in e.get("windows", [])]}


def outcome(function):
    try:
        return function()
    except Exception as error:
        return f"refused: {type(error).__name__}: {error}"


def first_difference(ours, theirs):
    if isinstance(ours, str) or isinstance(theirs, str):
        if isinstance(ours, str) and isinstance(theirs, str) and ours.startswith("refused") and theirs.startswith("refused"):
            return ""
        return "" if ours == theirs else f"\n      ours   {ours!r:.400}\n      theirs {theirs!r:.400}"
    for key, value in theirs.items():
        if key == "windows":
            if len(ours[key]) != len(value):
                return f" {len(ours[key])} windows, not {len(value)}"
            for place, (own, other) in enumerate(zip(ours[key], value)):
                if found := first_difference(own, other):
                    return f" window {place}:{found}"
        elif ours[key] != value:
            return f" {key}:\n      ours   {ours[key]!r:.600}\n      theirs {value!r:.600}"
    return ""


def check(seed, corpus, strings, folder):
    theirs = drawn.tokenizer(seed, corpus)
    path = os.path.join(folder, "tokenizer.json")
    theirs.save(path)
    try:
        ours = mase.Tokenizer(path)
    except mase.Error as refused:
        return f"refused: {str(refused)[len(path) + 1:]}"
    padded = theirs.padding is not None
    if len(ours) != theirs.get_vocab_size():
        return f"FAILED {seed}: {len(ours)} tokens, not {theirs.get_vocab_size()}"
    for text in strings:
        for special in (True, False):
            found = first_difference(outcome(lambda: of_ours(ours.encode(text, special=special, pad=padded))),
                                     outcome(lambda: of_theirs(theirs.encode(text, add_special_tokens=special), theirs)))
            if found:
                return f"FAILED {seed}: {text!r:.200} special={special}:{found}"
    for first, second in zip(strings[5:25], strings[9:]):
        found = first_difference(outcome(lambda: of_ours(ours.encode(first, second, pad=padded))), outcome(lambda: of_theirs(theirs.encode(first, second), theirs)))
        if found:
            return f"FAILED {seed}: pair {first!r:.100} {second!r:.100}:{found}"
    batch, other = outcome(lambda: ours.batch(strings[5:13], pad=padded)), outcome(lambda: theirs.encode_batch(strings[5:13]))
    if not isinstance(batch, str) and not isinstance(other, str):
        for place, (own, their) in enumerate(zip(batch, other)):
            if found := first_difference(of_ours(own), of_theirs(their, theirs)):
                return f"FAILED {seed}: batch row {place}:{found}"
    theirs.no_truncation()
    theirs.no_padding()
    for text in strings:
        ids = theirs.encode(text).ids
        for skip in (True, False):
            own, their = outcome(lambda: ours.decode(ids, skip_special=skip)), theirs.decode(ids, skip_special_tokens=skip)
            if own != their:
                return f"FAILED {seed}: decode {ids!r:.200} skip={skip}\n      ours   {own!r:.300}\n      theirs {their!r:.300}"
    return "equal"


def main():
    count, first = int(os.environ.get("MASE_TOKENIZERS", "300")), int(os.environ.get("MASE_TOKENIZERS_SEED", "1"))
    draw = random.Random(0)
    corpus = drawn.texts(draw, 400, special=False) * 3
    results = collections.Counter()
    for seed in range(first, first + count):
        strings = drawn.texts(random.Random(seed), 60)
        with tempfile.TemporaryDirectory() as folder:
            result = check(seed, corpus, strings, folder)
        results[result.split(":")[0].split(" ")[0]] += 1
        if result != "equal":
            print(f"{seed} {result}")
    print(f"{count} tokenizers: {dict(results)}")
    return 1 if results["FAILED"] or results["equal"] < count / 2 else 0


if __name__ == "__main__":
    sys.exit(main())
