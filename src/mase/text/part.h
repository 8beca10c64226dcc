// SPDX-License-Identifier: Apache-2.0
// The parts that tokenizer files are put together from. Each kind is an open set: a record says the
// name a file gives it, its keys, and how it is made from them.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "mase/base/registry.h"
#include "mase/base/schema.h"
#include "mase/text/encoding.h"
#include "mase/text/pieces.h"
#include "mase/text/vocabulary.h"

namespace mase {

// Changes a text before it is cut: lower case, normal forms.
using Normalizer = std::function<void(AlignedText&)>;
struct NormalizerRecord {
  static constexpr const char* kind = "normaliser";
  std::string name;  // as files call it: "Lowercase"
  std::vector<std::string> aliases = {};
  std::string summary;
  Schema schema = {};
  std::function<Normalizer(const Value& config)> make;
};

// Cuts a text into pieces, over whose borders no token reaches.
using Splitter = std::function<void(Pieces&)>;
struct SplitterRecord {
  static constexpr const char* kind = "pre-tokeniser";
  std::string name;
  std::vector<std::string> aliases = {};
  std::string summary;
  Schema schema = {};
  std::function<Splitter(const Value& config)> make;
};

// A token of a piece, and the bytes of the piece it stands for.
struct PieceToken {
  int32_t id;
  uint32_t begin, end;
};

// Turns a piece into tokens.
struct TokenModel {
  std::shared_ptr<const TokenVocabulary> vocabulary = {};
  std::function<void(std::string_view piece, std::vector<PieceToken>& tokens)> tokenize = {};
  // Where the model never joins what is before this text with it, unless that is this text too, a
  // piece may be cut there without a change of tokens; empty: nobody knows such a place.
  std::string word_start = {};
  Value notes = {};  // for people: how many merges, ...
};
struct TokenModelRecord {
  static constexpr const char* kind = "tokenizer model";
  std::string name;
  std::vector<std::string> aliases = {};
  std::string summary;
  Schema schema = {};  // without the large keys, which `make` reads itself
  std::vector<std::string> large_keys = {"vocab"};
  // `config` is validated, `whole` is as the file has it.
  std::function<TokenModel(const Value& config, const Value& whole)> make;
};

// Puts special tokens around sentences.
struct TemplateItem {
  int sequence = -1;  // 0 or 1: the first or second sentence; -1: special tokens
  std::vector<int32_t> ids = {};
  int32_t type = 0;
};
// Changes the offsets of a sentence. `texts`: of each token as it stands in the sentence or the
// vocabulary.
using OffsetTrimmer = std::function<void(Encoding&, const std::vector<std::string_view>& texts)>;
struct Processor {
  std::vector<TemplateItem> single = {}, pair = {};  // both empty: the sentences as they are
  OffsetTrimmer trim = {};
};
struct ProcessorRecord {
  static constexpr const char* kind = "post-processor";
  std::string name;
  std::vector<std::string> aliases = {};
  std::string summary;
  Schema schema = {};
  std::function<Processor(const Value& config, const TokenVocabulary& vocabulary)> make;
};

// Turns tokens back into a text: changes a list of texts, which are joined at the end.
using Decoder = std::function<void(std::vector<std::string>&)>;
struct DecoderRecord {
  static constexpr const char* kind = "decoder";
  std::string name;
  std::vector<std::string> aliases = {};
  std::string summary;
  Schema schema = {};
  std::function<Decoder(const Value& config)> make;
};

// The record that a part's table {"type": "Lowercase", ...} names.
template <class Record>
const Record& part_record(const Value& part, const std::string& path) {
  if (!part.is_dict() || !part["type"].is_string())
    throw Error(part.position(), path, fmt::format("is no {}: it has no 'type'", Record::kind));
  const std::string& name = part["type"].as_string();
  if (const Record* record = Registry<Record>::instance().find(name)) return *record;
  throw Error(part.position(), path,
              fmt::format("the {} '{}' is not known", Record::kind, printable(name.substr(0, 80))),
              suggestion(name, Registry<Record>::instance().names()));
}

// Its keys, with defaults; a key that nobody knows is an error.
Value part_config(const Value& part, const Schema& schema, const std::vector<std::string>& large,
                  const std::string& path);

// null, or no table at all, is a part that does nothing.
Normalizer make_normalizer(const Value& part, const std::string& path);
Splitter make_splitter(const Value& part, const std::string& path);
Decoder make_decoder(const Value& part, const std::string& path);
TokenModel make_token_model(const Value& part, const std::string& path);
Processor make_processor(const Value& part, const std::string& path,
                         const TokenVocabulary& vocabulary);

// {"Regex": "..."} or {"String": "..."}; one that matches nothing at all is refused.
TextPattern read_part_pattern(const Value& pattern);
// A key's text; an Error where it is none, or not UTF-8.
std::string part_text(const Value& value, const char* key);
uint32_t part_character(const Value& value, const char* key);  // a text of one character

}  // namespace mase
