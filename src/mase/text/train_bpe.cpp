// SPDX-License-Identifier: Apache-2.0
#include "mase/text/train_bpe.h"

#include <algorithm>
#include <queue>
#include <set>
#include <unordered_map>

#include "mase/text/part.h"

namespace mase {
namespace {

struct CountedPair {
  int64_t count;
  uint64_t pair;
  bool operator<(const CountedPair& other) const {  // the queue gives the greatest first
    return count != other.count ? count < other.count : pair > other.pair;
  }
};

struct LearntWord {
  std::vector<int32_t> symbols;
  int64_t count = 0;
};

struct SeenPair {
  int64_t count = 0;
  std::vector<uint32_t> words;  // where it was seen; it may be gone from there
};

class PairLearner {
 public:
  PairLearner(std::vector<std::string> tokens, const StringIndex& pieces,
              const std::vector<int64_t>& counts)
      : tokens_(std::move(tokens)) {
    for (const std::string& token : tokens_) known_.add(token);
    for (uint32_t i = 0; i < pieces.size(); ++i) {
      LearntWord word{{}, counts[i]};
      const std::string characters = byte_characters(pieces[i]);
      for (size_t at = 0; at < characters.size();) {
        const uint32_t bytes = code_point_at(characters, at).bytes;
        word.symbols.push_back(
            static_cast<int32_t>(known_.find(std::string_view(characters).substr(at, bytes))));
        at += bytes;
      }
      words_.push_back(std::move(word));
      count(i, 1);
    }
    for (const auto& [pair, seen] : pairs_) queue_.push({seen.count, pair});
  }

  // The tokens of the most frequent pair, joined; false: there is none that often.
  bool learn(int64_t least_count) {
    while (!queue_.empty()) {
      CountedPair top = queue_.top();
      queue_.pop();
      const int64_t now = pairs_[top.pair].count;
      if (now != top.count) {  // counted anew since it was put there
        if (now > 0) queue_.push({now, top.pair});
        continue;
      }
      if (top.count < std::max<int64_t>(1, least_count)) return false;
      join(top.pair);
      return true;
    }
    return false;
  }

  const std::vector<std::string>& tokens() const { return tokens_; }
  List merges;

 private:
  void count(uint32_t word, int sign) {
    const std::vector<int32_t>& symbols = words_[word].symbols;
    for (size_t i = 0; i + 1 < symbols.size(); ++i) {
      SeenPair& seen = pairs_[PairIndex::key(symbols[i], symbols[i + 1])];
      seen.count += sign * words_[word].count;
      if (sign > 0 && (seen.words.empty() || seen.words.back() != word)) seen.words.push_back(word);
    }
  }

  void join(uint64_t pair) {
    const auto first = static_cast<int32_t>(pair >> 32), second = static_cast<int32_t>(pair);
    const std::string token =
        tokens_[static_cast<size_t>(first)] + tokens_[static_cast<size_t>(second)];
    uint32_t id = known_.find(token);
    if (id == StringIndex::none) {
      id = known_.add(token);
      tokens_.push_back(token);
    }
    merges.push_back(
        List{tokens_[static_cast<size_t>(first)], tokens_[static_cast<size_t>(second)]});
    std::vector<uint32_t> affected = std::move(pairs_[pair].words);
    std::sort(affected.begin(), affected.end());
    affected.erase(std::unique(affected.begin(), affected.end()), affected.end());
    std::set<uint64_t> made;
    for (const uint32_t word : affected) {
      count(word, -1);
      std::vector<int32_t>& symbols = words_[word].symbols;
      size_t kept = 0;
      for (size_t i = 0; i < symbols.size(); ++i) {
        const bool found =
            i + 1 < symbols.size() && symbols[i] == first && symbols[i + 1] == second;
        symbols[kept++] = found ? static_cast<int32_t>(id) : symbols[i];
        i += found;
      }
      symbols.resize(kept);
      count(word, 1);
      for (size_t i = 0; i + 1 < symbols.size(); ++i)
        if (symbols[i] == static_cast<int32_t>(id) || symbols[i + 1] == static_cast<int32_t>(id))
          made.insert(PairIndex::key(symbols[i], symbols[i + 1]));
    }
    for (const uint64_t next : made) queue_.push({pairs_[next].count, next});
  }

  std::vector<std::string> tokens_;
  StringIndex known_;  // the tokens again, by text; numbers are ids
  std::vector<LearntWord> words_;
  std::unordered_map<uint64_t, SeenPair> pairs_;
  std::priority_queue<CountedPair> queue_;
};

Dict byte_level_part() {
  return Dict{{"type", "ByteLevel"},
              {"add_prefix_space", false},
              {"trim_offsets", true},
              {"use_regex", true}};
}

}  // namespace

Value train_byte_level_bpe(const std::vector<std::string>& texts, const BpeTraining& training) {
  constexpr size_t bytes = 256;
  std::vector<std::string> tokens;
  for (const std::string& special : training.special) {
    if (special.empty() || first_invalid_utf8(special) < special.size() ||
        std::find(tokens.begin(), tokens.end(), special) != tokens.end())
      throw Error("special",
                  fmt::format("'{}' is no token, or is there twice", printable(special)));
    tokens.push_back(special);
  }
  const auto least = static_cast<int64_t>(tokens.size() + bytes);
  if (training.size < least || training.size >= TokenVocabulary::most_ids)
    throw Error("size", fmt::format("{} tokens", training.size),
                fmt::format("{} to {}: special tokens and bytes are among them", least,
                            TokenVocabulary::most_ids - 1));
  std::vector<uint32_t> alphabet;
  for (size_t byte = 0; byte < bytes; ++byte)
    alphabet.push_back(character_of_byte(static_cast<unsigned char>(byte)));
  std::sort(alphabet.begin(), alphabet.end());
  for (const uint32_t code : alphabet) append_utf8(tokens.emplace_back(), code);

  const Splitter split = make_splitter(byte_level_part(), "pre_tokenizer");
  StringIndex pieces;
  std::vector<int64_t> counts;
  for (size_t i = 0; i < texts.size(); ++i) {
    if (first_invalid_utf8(texts[i]) < texts[i].size())
      throw Error(fmt::format("text {}", i + 1), "is not UTF-8",
                  "convert it, for instance with iconv");
    Pieces cut{.text = AlignedText(texts[i], 0),
               .pieces = {{0, static_cast<uint32_t>(texts[i].size())}}};
    split(cut);
    for (const TextSpan& piece : cut.pieces) {
      const std::string_view word = cut.text.text().substr(piece.begin, piece.end - piece.begin);
      uint32_t number = pieces.find(word);
      if (number == StringIndex::none) {
        number = pieces.add(word);
        counts.push_back(0);
      }
      ++counts[number];
    }
  }
  PairLearner learner(std::move(tokens), pieces, counts);
  while (static_cast<int64_t>(learner.tokens().size()) < training.size &&
         learner.learn(training.least_count)) {
  }
  Dict vocabulary;
  List added;
  for (size_t id = 0; id < learner.tokens().size(); ++id) {
    vocabulary.add(learner.tokens()[id], id);
    if (id < training.special.size())
      added.push_back(Dict{{"id", id},
                           {"content", learner.tokens()[id]},
                           {"single_word", false},
                           {"lstrip", false},
                           {"rstrip", false},
                           {"normalized", false},
                           {"special", true}});
  }
  Dict offsets = byte_level_part();
  offsets.set("trim_offsets", false);
  return Dict{{"version", "1.0"},
              {"truncation", Value()},
              {"padding", Value()},
              {"added_tokens", std::move(added)},
              {"normalizer", Value()},
              {"pre_tokenizer", byte_level_part()},
              {"post_processor", std::move(offsets)},
              {"decoder", byte_level_part()},
              {"model", Dict{{"type", "BPE"},
                             {"dropout", Value()},
                             {"unk_token", Value()},
                             {"continuing_subword_prefix", Value()},
                             {"end_of_word_suffix", Value()},
                             {"fuse_unk", false},
                             {"byte_fallback", false},
                             {"ignore_merges", false},
                             {"vocab", std::move(vocabulary)},
                             {"merges", std::move(learner.merges)}}}};
}

}  // namespace mase
