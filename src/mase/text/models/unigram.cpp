// SPDX-License-Identifier: Apache-2.0
// Unigram: the cut of a piece into tokens that is likeliest if tokens are drawn one by one
// (Viterbi). What no token covers is unknown, ten nats less likely than the least likely token.
#include <algorithm>
#include <cmath>
#include <limits>

#include "mase/text/part.h"

namespace mase::unigram_model {
namespace {

constexpr double unknown_penalty = 10;
constexpr size_t longest_token = 1024;  // bytes: what one place may cost

// Tokens letter by letter: a node and a byte lead to a node.
class Trie {
 public:
  void add(std::string_view token, int32_t id) {
    int32_t node = 0;
    for (const char c : token) {
      const uint64_t key = PairIndex::key(node, static_cast<unsigned char>(c));
      const PairIndex::Entry* next = edges_.find(key);
      if (next) {
        node = next->result;
        continue;
      }
      ids_.push_back(-1);
      const auto made = static_cast<int32_t>(ids_.size() - 1);
      edges_.set({key, 0, made});
      node = made;
    }
    ids_[static_cast<size_t>(node)] = id;
  }
  // Calls found(id, bytes) for each token that the text begins with, shorter ones first.
  template <class Found>
  void prefixes(std::string_view text, Found found) const {
    int32_t node = 0;
    for (size_t i = 0; i < text.size(); ++i) {
      const auto* next = edges_.find(PairIndex::key(node, static_cast<unsigned char>(text[i])));
      if (!next) return;
      node = next->result;
      if (ids_[static_cast<size_t>(node)] >= 0) found(ids_[static_cast<size_t>(node)], i + 1);
    }
  }

 private:
  PairIndex edges_;
  std::vector<int32_t> ids_ = {-1};
};

struct Unigrams {
  std::shared_ptr<const TokenVocabulary> vocabulary;
  Trie trie;
  std::vector<double> scores;
  double unknown_score = 0;
  int32_t unknown = -1;
  std::vector<int32_t> bytes;  // ids of <0x00> to <0xFF>; empty: there is no falling back

  struct Best {
    double score = 0;
    uint32_t from = UINT32_MAX;
    int32_t id = -1;
  };

  void tokenize(std::string_view piece, std::vector<PieceToken>& tokens) const {
    const size_t size = piece.size();
    std::vector<Best> ends(size + 1);
    const auto offer = [&](size_t from, size_t to, double score, int32_t id) {
      Best& best = ends[to];
      if (best.from == UINT32_MAX || score > best.score)
        best = {score, static_cast<uint32_t>(from), id};
    };
    for (size_t at = 0; at < size;) {
      const size_t character = code_point_at(piece, at).bytes;
      bool single = false;
      trie.prefixes(piece.substr(at), [&](int32_t id, size_t length) {
        offer(at, at + length, ends[at].score + scores[static_cast<size_t>(id)], id);
        single = single || length == character;
      });
      if (!single) {
        if (unknown < 0)
          throw Error("tokenizer", "a character has no token, and the vocabulary no unknown one");
        offer(at, at + character, ends[at].score + unknown_score, unknown);
      }
      at += character;
    }
    std::vector<PieceToken> reversed;
    for (auto end = static_cast<uint32_t>(size); end > 0; end = ends[end].from) {
      const Best& best = ends[end];
      // A run of unknown characters is one token.
      if (best.id == unknown && !reversed.empty() && reversed.back().id == unknown)
        reversed.back().begin = best.from;
      else
        reversed.push_back({best.id, best.from, end});
    }
    for (auto token = reversed.rbegin(); token != reversed.rend(); ++token)
      add(piece, *token, tokens);
  }

 private:
  void add(std::string_view piece, const PieceToken& token, std::vector<PieceToken>& tokens) const {
    if (token.id != unknown) {
      tokens.push_back(token);
      return;
    }
    const std::string_view text = piece.substr(token.begin, token.end - token.begin);
    if (const auto id = vocabulary->id(text)) {  // several unknown ones together may be a token
      tokens.push_back({*id, token.begin, token.end});
      return;
    }
    const bool falls_back = !bytes.empty() && std::all_of(text.begin(), text.end(), [&](char c) {
      return bytes[static_cast<unsigned char>(c)] >= 0;
    });
    if (!falls_back) {
      tokens.push_back(token);
      return;
    }
    for (const char c : text)
      tokens.push_back({bytes[static_cast<unsigned char>(c)], token.begin, token.end});
  }
};

TokenModel make(const Value& config, const Value& whole) {
  auto unigrams = std::make_shared<Unigrams>();
  auto vocabulary = std::make_shared<TokenVocabulary>();
  const Value& table = whole["vocab"];
  if (!table.is_list() || table.as_list().empty())
    throw Error(whole.position(), "vocab", "is no list of tokens and scores");
  double least = std::numeric_limits<double>::infinity();
  for (const Value& entry : table.as_list()) {
    if (!entry.is_list() || entry.as_list().size() != 2 || !entry.as_list()[1].is_number())
      throw Error(entry.position(), "vocab", "an entry is no token with a score");
    const std::string& token = entry.as_list()[0].as_string("vocab");
    const double score = entry.as_list()[1].as_double();
    if (token.empty() || token.size() > longest_token || !std::isfinite(score))
      throw Error(entry.position(), "vocab", "a token is empty, too long or has no finite score");
    const auto id = static_cast<int64_t>(unigrams->scores.size());
    vocabulary->add(token, Value(id).set_position(entry.position()));
    unigrams->trie.add(token, static_cast<int32_t>(id));
    unigrams->scores.push_back(score);
    least = std::min(least, score);
  }
  unigrams->vocabulary = vocabulary;
  unigrams->unknown_score = least - unknown_penalty;
  if (const Value& unknown = config["unk_id"]; unknown.is_int()) {
    if (!vocabulary->token(unknown.as_int()))
      throw Error(unknown.position(), "unk_id", "is no id of the vocabulary");
    unigrams->unknown = static_cast<int32_t>(unknown.as_int());
  }
  if (config["byte_fallback"].as_bool())
    for (int byte = 0; byte < 256; ++byte)
      unigrams->bytes.push_back(vocabulary->id(fmt::format("<0x{:02X}>", byte)).value_or(-1));
  return {.vocabulary = vocabulary,
          .tokenize = [unigrams](
                          std::string_view piece,
                          std::vector<PieceToken>& tokens) { unigrams->tokenize(piece, tokens); },
          .notes = Dict{{"byte_fallback", config["byte_fallback"].as_bool()}}};
}

const Register<TokenModelRecord> registered{
    {.name = "Unigram",
     .summary = "the likeliest cut of a piece into tokens",
     .schema = {{{.name = "unk_id",
                  .type = FieldType::integer,
                  .help = "the token for what no other covers",
                  .minimum = 0},
                 {.name = "byte_fallback",
                  .type = FieldType::boolean,
                  .default_value = false,
                  .help = "the bytes of unknown characters as <0x00> to <0xFF>"}}},
     .make = make}};

}  // namespace
}  // namespace mase::unigram_model
