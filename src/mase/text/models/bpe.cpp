// SPDX-License-Identifier: Apache-2.0
// BPE: characters are joined pair by pair, the pair that was learnt first before all others, from
// left to right; a queue of pairs makes that n log n in the length of a piece.
#include <queue>

#include "mase/text/part.h"

namespace mase::bpe_model {
namespace {

struct Symbol {
  int32_t id;
  uint32_t begin, end;  // an empty one was joined to the one before
  int32_t previous, next;
};

struct Join {
  uint32_t rank;
  int32_t place, result;
  bool operator<(const Join& other) const {  // the queue gives the greatest first
    return rank != other.rank ? rank > other.rank : place > other.place;
  }
};

class BytePairs {
 public:
  BytePairs(std::shared_ptr<const TokenVocabulary> vocabulary, const Value& config)
      : vocabulary_(std::move(vocabulary)),
        fuses_(config["fuse_unk"].as_bool()),
        whole_first_(config["ignore_merges"].as_bool()) {
    prefix_ = text_of(config, "continuing_subword_prefix");
    suffix_ = text_of(config, "end_of_word_suffix");
    if (const Value& unknown = config["unk_token"]; !unknown.is_null()) {
      const std::string name = part_text(unknown, "unk_token");
      unknown_ = vocabulary_->id(name);
      if (!unknown_)
        throw Error(unknown.position(), "unk_token",
                    fmt::format("'{}' is not in the vocabulary", printable(name.substr(0, 80))));
    }
    if (!config["byte_fallback"].as_bool()) return;
    for (int byte = 0; byte < 256; ++byte)
      bytes_.push_back(vocabulary_->id(fmt::format("<0x{:02X}>", byte)).value_or(-1));
  }

  void add_merge(const Value& merge, uint32_t rank) {
    std::string first, second;
    if (merge.is_string()) {
      const std::string& text = merge.as_string();
      const size_t space = text.find(' ');
      if (space == std::string::npos || text.find(' ', space + 1) != std::string::npos)
        throw Error(merge.position(), "merges",
                    fmt::format("'{}' is no pair", printable(text.substr(0, 80))));
      first = text.substr(0, space);
      second = text.substr(space + 1);
    } else {
      if (!merge.is_list() || merge.as_list().size() != 2)
        throw Error(merge.position(), "merges", "an entry is no pair");
      first = merge.as_list()[0].as_string("merges");
      second = merge.as_list()[1].as_string("merges");
    }
    const auto known = [&](const std::string& token) {
      const std::optional<int32_t> id = vocabulary_->id(token);
      if (!id)
        throw Error(merge.position(), "merges",
                    fmt::format("'{}' is not in the vocabulary", printable(token.substr(0, 80))));
      return *id;
    };
    if (!prefix_.empty() && !starts_with(second, prefix_))
      throw Error(merge.position(), "merges", "a second part does not begin with the prefix");
    const std::string both = first + second.substr(prefix_.size());
    merges_.set({PairIndex::key(known(first), known(second)), rank, known(both)});
    if (cuts_ && crosses(both)) cuts_ = false;
  }

  void finish_merges() {
    cuts_ = cuts_ && prefix_.empty() && suffix_.empty() && !whole_first_ && vocabulary_->id(mark);
  }
  std::string word_start() const { return cuts_ ? mark : ""; }
  size_t merges() const { return merges_.size(); }

  void tokenize(std::string_view piece, std::vector<PieceToken>& tokens) const {
    if (whole_first_)
      if (const auto id = vocabulary_->id(piece)) {
        tokens.push_back({*id, 0, static_cast<uint32_t>(piece.size())});
        return;
      }
    std::vector<Symbol> symbols = symbols_of(piece);
    join(symbols);
    for (const Symbol& symbol : symbols)
      if (symbol.end > symbol.begin) tokens.push_back({symbol.id, symbol.begin, symbol.end});
  }

 private:
  static constexpr const char* mark = "\xE2\x96\x81";

  static std::string text_of(const Value& config, const char* key) {
    return config[key].is_null() ? "" : part_text(config[key], key);
  }

  // Whether the mark of words stands behind something else in it.
  static bool crosses(std::string_view token) {
    size_t start = 0;
    while (starts_with(token.substr(start), mark)) start += 3;
    return token.find(mark, start) != std::string_view::npos;
  }

  std::vector<Symbol> symbols_of(std::string_view piece) const {
    std::vector<Symbol> symbols;
    symbols.reserve(piece.size());
    uint32_t end = 0;
    const auto add = [&](int32_t id, uint32_t bytes) {
      symbols.push_back({id, end, end + bytes, static_cast<int32_t>(symbols.size()) - 1,
                         static_cast<int32_t>(symbols.size()) + 1});
      end += bytes;
    };
    uint32_t unknown = 0;  // bytes of unknown characters that wait
    const auto flush = [&] {
      if (unknown > 0) add(*unknown_, unknown);
      unknown = 0;
    };
    std::string decorated;
    for (size_t at = 0; at < piece.size();) {
      const uint32_t bytes = code_point_at(piece, at).bytes;
      std::string_view character = piece.substr(at, bytes);
      const bool last = at + bytes == piece.size();
      if ((at > 0 && !prefix_.empty()) || (last && !suffix_.empty())) {
        decorated = (at > 0 ? prefix_ : "") + std::string(character) + (last ? suffix_ : "");
        character = decorated;
      }
      at += bytes;
      if (const auto id = vocabulary_->id(character)) {
        flush();
        add(*id, bytes);
        continue;
      }
      if (falls_back(character)) {
        for (const char byte : character) add(bytes_[static_cast<unsigned char>(byte)], 1);
        continue;
      }
      if (!unknown_) continue;  // as the library does: what has no token is left out
      if (!fuses_) flush();
      unknown += bytes;
    }
    flush();
    if (!symbols.empty()) symbols.back().next = -1;
    return symbols;
  }

  bool falls_back(std::string_view character) const {
    if (bytes_.empty()) return false;
    for (const char byte : character)
      if (bytes_[static_cast<unsigned char>(byte)] < 0) return false;
    return true;
  }

  void join(std::vector<Symbol>& symbols) const {
    std::vector<Join> pairs;
    const auto pair_at = [&](int32_t place) -> const PairIndex::Entry* {
      const Symbol& left = symbols[static_cast<size_t>(place)];
      if (left.next < 0) return nullptr;
      return merges_.find(PairIndex::key(left.id, symbols[static_cast<size_t>(left.next)].id));
    };
    for (size_t i = 0; i + 1 < symbols.size(); ++i)
      if (const auto* entry = pair_at(static_cast<int32_t>(i)))
        pairs.push_back({entry->rank, static_cast<int32_t>(i), entry->result});
    std::priority_queue<Join> queue({}, std::move(pairs));
    while (!queue.empty()) {
      const Join top = queue.top();
      queue.pop();
      Symbol& left = symbols[static_cast<size_t>(top.place)];
      if (left.end == left.begin) continue;
      const auto* entry = pair_at(top.place);
      if (!entry || entry->result != top.result) continue;  // one of the two has changed since
      Symbol& right = symbols[static_cast<size_t>(left.next)];
      left.id = top.result;
      left.end = right.end;
      left.next = right.next;
      right.end = right.begin;
      if (left.next >= 0) symbols[static_cast<size_t>(left.next)].previous = top.place;
      for (const int32_t place : {left.previous, top.place})
        if (place >= 0)
          if (const auto* next = pair_at(place)) queue.push({next->rank, place, next->result});
    }
  }

  std::shared_ptr<const TokenVocabulary> vocabulary_;
  PairIndex merges_;
  std::string prefix_, suffix_;
  std::optional<int32_t> unknown_;
  bool fuses_, whole_first_, cuts_ = true;
  std::vector<int32_t> bytes_;  // ids of <0x00> to <0xFF>; empty: there is no falling back
};

TokenModel make(const Value& config, const Value& whole) {
  if (config["dropout"].is_number() && config["dropout"].as_double() != 0)
    throw Error(config.position(), "dropout", "pairs that are left out at random",
                "set it to null: tokens are then the same each time");
  auto vocabulary =
      std::make_shared<const TokenVocabulary>(read_token_vocabulary(whole["vocab"], "vocab"));
  auto pairs = std::make_shared<BytePairs>(vocabulary, config);
  if (!whole["merges"].is_list()) throw Error(whole.position(), "merges", "is no list of pairs");
  uint32_t rank = 0;
  for (const Value& merge : whole["merges"].as_list()) pairs->add_merge(merge, rank++);
  pairs->finish_merges();
  return {.vocabulary = vocabulary,
          .tokenize = [pairs](std::string_view piece,
                              std::vector<PieceToken>& tokens) { pairs->tokenize(piece, tokens); },
          .word_start = pairs->word_start(),
          .notes = Dict{{"merges", pairs->merges()},
                        {"byte_fallback", config["byte_fallback"].as_bool()}}};
}

const Register<TokenModelRecord> registered{
    {.name = "BPE",
     .summary = "characters joined pair by pair in the order the pairs were learnt",
     .schema = {{{.name = "dropout", .type = FieldType::number, .help = "refused unless 0"},
                 {.name = "unk_token", .type = FieldType::any, .help = "for unknown characters"},
                 {.name = "continuing_subword_prefix", .type = FieldType::any},
                 {.name = "end_of_word_suffix", .type = FieldType::any},
                 {.name = "fuse_unk",
                  .type = FieldType::boolean,
                  .default_value = false,
                  .help = "one unknown token for a run of unknown characters"},
                 {.name = "byte_fallback",
                  .type = FieldType::boolean,
                  .default_value = false,
                  .help = "the bytes of unknown characters as <0x00> to <0xFF>"},
                 {.name = "ignore_merges",
                  .type = FieldType::boolean,
                  .default_value = false,
                  .help = "a piece that is a token is that token"}}},
     .large_keys = {"vocab", "merges"},
     .make = make}};

}  // namespace
}  // namespace mase::bpe_model
