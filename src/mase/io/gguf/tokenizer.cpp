// SPDX-License-Identifier: Apache-2.0
// The tokenizer inside a GGUF file, as the tokenizer.json that means the same: byte-level BPE with
// the splitter that `tokenizer.ggml.pre` names, or SentencePiece's BPE, whose merges follow from
// the scores of its tokens.
#include <algorithm>
#include <functional>
#include <unordered_map>

#include "mase/base/file.h"
#include "mase/base/text.h"
#include "mase/io/gguf/gguf_file.h"
#include "mase/text/tokenizer.h"

namespace mase::tokenizer_gguf {
namespace {

enum TokenKind : int64_t { normal = 1, unknown = 2, control = 3, user_defined = 4, unused = 5 };

constexpr const char* mark = "\xE2\x96\x81";  // SentencePiece's space

Value byte_level(bool regex) {
  return Dict{{"type", "ByteLevel"},
              {"add_prefix_space", false},
              {"trim_offsets", true},
              {"use_regex", regex}};
}

Value in_sequence(Value first, Value second) {
  return Dict{{"type", "Sequence"}, {"pretokenizers", List{std::move(first), std::move(second)}}};
}

// By the patterns of the models' own tokenizer.json.
Value split_by(const std::string& digits) {
  const std::string pattern = "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|" +
                              digits +
                              "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
  return in_sequence(Dict{{"type", "Split"},
                          {"pattern", Dict{{"Regex", pattern}}},
                          {"behavior", "Isolated"},
                          {"invert", false}},
                     byte_level(false));
}

struct Splitting {
  const char* name;
  Value (*splitter)();
  bool whole_first = false;  // a piece that is a token is that token
  bool begins = false;       // with the text's first token, unless the file says otherwise
};

const Splitting splittings[] = {
    {"gpt-2", [] { return byte_level(true); }},
    {"smollm",
     [] {
       return in_sequence(Dict{{"type", "Digits"}, {"individual_digits", true}}, byte_level(true));
     }},
    {"starcoder",
     [] {
       return in_sequence(Dict{{"type", "Digits"}, {"individual_digits", true}}, byte_level(true));
     }},
    {"llama-bpe", [] { return split_by("\\p{N}{1,3}"); }, true, true},
    {"qwen2", [] { return split_by("\\p{N}"); }},
};

const Splitting& splitting_of(const GgufFile& file) {
  const std::string name(file.text("tokenizer.ggml.pre").value_or("gpt-2"));
  std::vector<std::string> known;
  for (const Splitting& one : splittings) {
    if (name == one.name) return one;
    known.emplace_back(one.name);
  }
  throw Error(
      file.place(), fmt::format("its texts are split as '{}' does", printable(name)),
      fmt::format("known: {}; or take the tokenizer.json of the network", join(known, ", ")));
}

struct Tokens {
  std::vector<std::string_view> texts;
  std::vector<int64_t> kinds;  // empty: all normal
  int64_t kind(size_t i) const { return kinds.empty() ? int64_t{normal} : kinds[i]; }
};

Tokens tokens_of(const GgufFile& file) {
  Tokens tokens{file.texts("tokenizer.ggml.tokens"), file.wholes("tokenizer.ggml.token_type")};
  if (tokens.texts.empty())
    throw Error(file.place(), "has no tokenizer", "give the tokenizer.json of the network");
  if (!tokens.kinds.empty() && tokens.kinds.size() != tokens.texts.size())
    throw Error(file.place(),
                fmt::format("has {} kinds of {} tokens", tokens.kinds.size(), tokens.texts.size()));
  for (const std::string_view text : tokens.texts)
    if (first_invalid_utf8(text) < text.size())
      throw Error(file.place(), "a token is not UTF-8", "the file is damaged");
  return tokens;
}

// SentencePiece joins the pair first whose token has the best score: merges in that order. All
// splits of a token are pairs.
List merges_by_score(const GgufFile& file, const Tokens& tokens) {
  const std::vector<float> scores = file.numbers("tokenizer.ggml.scores");
  if (scores.size() != tokens.texts.size())
    throw Error(file.place(),
                fmt::format("has {} scores of {} tokens", scores.size(), tokens.texts.size()));
  constexpr size_t longest = 1024;
  std::unordered_map<std::string_view, size_t> places;
  for (size_t i = 0; i < tokens.texts.size(); ++i) places.emplace(tokens.texts[i], i);
  struct Merge {
    float score;
    size_t left, right;
  };
  std::vector<Merge> merges;
  for (size_t i = 0; i < tokens.texts.size(); ++i) {
    const std::string_view text = tokens.texts[i];
    if (text.size() > longest)
      throw Error(file.place(), fmt::format("a token of {} bytes", text.size()));
    if (tokens.kind(i) != normal && tokens.kind(i) != user_defined) continue;
    for (size_t cut = 1; cut < text.size(); ++cut) {
      const auto left = places.find(text.substr(0, cut)), right = places.find(text.substr(cut));
      if (left != places.end() && right != places.end())
        merges.push_back({scores[i], left->second, right->second});
    }
  }
  std::stable_sort(merges.begin(), merges.end(), [](const Merge& a, const Merge& b) {
    if (a.score != b.score) return a.score > b.score;
    return a.left != b.left ? a.left < b.left : a.right < b.right;
  });
  List result;
  for (const Merge& merge : merges)
    result.push_back(
        List{std::string(tokens.texts[merge.left]), std::string(tokens.texts[merge.right])});
  return result;
}

// The text's first and last token around it, as the file asks for.
Value processor_of(const GgufFile& file, const Tokens& tokens, bool begins) {
  List single, pair;
  Dict special;
  const auto add = [&](const char* wanted, bool usual, const char* which, int type) {
    if (!file.flag(fmt::format("tokenizer.ggml.add_{}_token", wanted)).value_or(usual)) return;
    const auto id = file.whole(fmt::format("tokenizer.ggml.{}_token_id", wanted));
    if (!id || *id < 0 || *id >= static_cast<int64_t>(tokens.texts.size()))
      throw Error(file.place(), fmt::format("texts {} with a token that it does not name", which));
    const std::string token(tokens.texts[static_cast<size_t>(*id)]);
    const Value item = Dict{{"SpecialToken", Dict{{"id", token}, {"type_id", int64_t{type}}}}};
    pair.push_back(item);
    if (type == 0) single.push_back(item);
    special.set(token, Dict{{"id", token}, {"ids", List{*id}}, {"tokens", List{token}}});
  };
  const auto sentence = [&](const char* name, int type) {
    return Value(Dict{{"Sequence", Dict{{"id", name}, {"type_id", int64_t{type}}}}});
  };
  add("bos", begins, "begin", 0);
  single.push_back(sentence("A", 0));
  pair.push_back(sentence("A", 0));
  add("eos", false, "end", 0);
  add("bos", begins, "begin", 1);
  pair.push_back(sentence("B", 1));
  add("eos", false, "end", 1);
  if (special.empty()) return Value();
  return Dict{{"type", "TemplateProcessing"},
              {"single", std::move(single)},
              {"pair", std::move(pair)},
              {"special_tokens", std::move(special)}};
}

Value read(const std::string& path) {
  const std::shared_ptr<const MappedFile> mapped = MappedFile::open(path);
  if (!looks_like_gguf(mapped->bytes())) throw Error(path, "is no GGUF file");
  MemoryBudget budget({}, mapped->bytes().size());
  const GgufFile file(mapped->bytes(), path, budget);
  const std::string kind(file.text("tokenizer.ggml.model").value_or(""));
  const Tokens tokens = tokens_of(file);
  Dict vocabulary;
  List added;
  for (size_t i = 0; i < tokens.texts.size(); ++i) {
    const std::string text(tokens.texts[i]);
    vocabulary.add(text, static_cast<int64_t>(i));
    const int64_t type = tokens.kind(i);
    if (type == control || type == user_defined || type == unknown)
      added.push_back(Dict{{"id", static_cast<int64_t>(i)},
                           {"content", text},
                           {"single_word", false},
                           {"lstrip", false},
                           {"rstrip", false},
                           {"normalized", false},
                           {"special", type != user_defined}});
  }
  Dict result{{"version", "1.0"}, {"added_tokens", std::move(added)}};
  Dict model{{"type", "BPE"}, {"vocab", std::move(vocabulary)}};
  if (kind == "gpt2") {
    const Splitting& splitting = splitting_of(file);
    List merges;
    for (const std::string_view merge : file.texts("tokenizer.ggml.merges")) {
      if (first_invalid_utf8(merge) < merge.size()) throw Error(path, "a merge is not UTF-8");
      merges.emplace_back(std::string(merge));
    }
    model.set("merges", std::move(merges));
    model.set("ignore_merges", splitting.whole_first);
    result.set("pre_tokenizer", splitting.splitter());
    result.set("decoder", Dict{{"type", "ByteLevel"}});
    result.set("post_processor", processor_of(file, tokens, splitting.begins));
  } else if (kind == "llama") {
    model.set("merges", merges_by_score(file, tokens));
    model.set("byte_fallback", true);
    model.set("fuse_unk", true);
    if (const auto id = file.whole("tokenizer.ggml.unknown_token_id");
        id && *id >= 0 && *id < static_cast<int64_t>(tokens.texts.size()))
      model.set("unk_token", std::string(tokens.texts[static_cast<size_t>(*id)]));
    const bool space = file.flag("tokenizer.ggml.add_space_prefix").value_or(true);
    List changes, back;
    if (space) changes.push_back(Dict{{"type", "Prepend"}, {"prepend", mark}});
    changes.push_back(
        Dict{{"type", "Replace"}, {"pattern", Dict{{"String", " "}}}, {"content", mark}});
    back.push_back(
        Dict{{"type", "Replace"}, {"pattern", Dict{{"String", mark}}}, {"content", " "}});
    back.push_back(Dict{{"type", "ByteFallback"}});
    back.push_back(Dict{{"type", "Fuse"}});
    if (space)
      back.push_back(
          Dict{{"type", "Strip"}, {"content", " "}, {"start", int64_t{1}}, {"stop", int64_t{0}}});
    result.set("normalizer", Dict{{"type", "Sequence"}, {"normalizers", std::move(changes)}});
    result.set("decoder", Dict{{"type", "Sequence"}, {"decoders", std::move(back)}});
    result.set("post_processor", processor_of(file, tokens, true));
  } else {
    throw Error(
        path,
        kind.empty() ? "has no tokenizer" : fmt::format("its tokenizer is '{}'", printable(kind)),
        "gpt2 (byte-level BPE) and llama (SentencePiece's BPE) are read; or take the "
        "tokenizer.json of the network");
  }
  result.set("model", std::move(model));
  return result;
}

const Register<TokenizerFileRecord> registered{{.name = "gguf",
                                                .summary = "the tokenizer inside a GGUF file",
                                                .suffix = ".gguf",
                                                .read = read}};

}  // namespace
}  // namespace mase::tokenizer_gguf
