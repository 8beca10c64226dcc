// SPDX-License-Identifier: Apache-2.0
// From texts to tokens and back, as a tokenizer file says. Immutable but for two settings; any
// number of threads may use one at once.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "mase/base/registry.h"
#include "mase/text/added_tokens.h"
#include "mase/text/part.h"

namespace mase {

struct TokenizerParts {
  std::shared_ptr<const TokenVocabulary> vocabulary;  // added tokens among them
  std::vector<AddedToken> added;
  TokenFinder plain, normalized;  // what is looked for before normalisation and after it
  Normalizer normalize;
  Splitter split;
  TokenModel model;
  Processor processor;
  Decoder decode;
  Value summary;  // of the parts, for people
};

class Tokenizer {
 public:
  Tokenizer(std::shared_ptr<const TokenizerParts> parts, std::optional<Truncation> truncation,
            std::optional<Padding> padding);

  // tokenizer.json, vocab.txt (BERT), or vocab.json beside merges.txt; or the folder of one of
  // these; or a file of another kind that has one inside.
  static Tokenizer load(const std::string& path);
  // Whether the folder has one, or the file may have one inside.
  static bool is_in(const std::string& path);

  std::optional<Truncation> truncation;
  std::optional<Padding> padding;

  // Texts are UTF-8; others are an Error. `special`: with the template's special tokens.
  Encoding encode(std::string_view text, bool special = true) const;
  Encoding encode(std::string_view first, std::string_view second, bool special = true) const;
  // Padded to the batch's longest, if padding is set. `threads` 0: as many as there are.
  std::vector<Encoding> encode_batch(const std::vector<std::string>& texts, bool special = true,
                                     int threads = 0) const;
  // Of pairs: the first text with the first of the others, ...
  std::vector<Encoding> encode_batch(const std::vector<std::string>& first,
                                     const std::vector<std::string>& second, bool special = true,
                                     int threads = 0) const;
  // Ids alone, which is quicker; neither cut nor padded.
  std::vector<int32_t> ids(std::string_view text, bool special = true) const;
  std::vector<std::vector<int32_t>> ids_batch(const std::vector<std::string>& texts,
                                              bool special = true, int threads = 0) const;
  // An id that is none of the tokenizer's is an Error.
  std::string decode(std::span<const int32_t> ids, bool skip_special = false) const;

  std::string normalized(std::string_view text) const;
  const TokenVocabulary& vocabulary() const { return *parts_->vocabulary; }
  const TokenizerParts& parts() const { return *parts_; }
  // The padding of the settings, or a token that is called so.
  std::optional<int32_t> padding_id() const;
  // How many special tokens are put around one sentence, or two.
  size_t special_tokens(bool pair) const;

 private:
  class Worker;
  class Workers;
  struct Raw;

  void run(std::string_view text, bool spans, Raw& raw) const;
  Encoding sentence(std::string_view text, int number) const;
  Encoding assembled(const Encoding* first, const Encoding* second, bool special) const;
  Encoding unpadded(std::string_view text, bool special) const;
  Encoding unpadded(std::string_view first, std::string_view second, bool special) const;

  std::shared_ptr<const TokenizerParts> parts_;
  std::shared_ptr<Workers> workers_;
};

// Files of other kinds that have a tokenizer inside, found by their suffix.
struct TokenizerFileRecord {
  static constexpr const char* kind = "tokenizer file";
  std::string name;
  std::vector<std::string> aliases = {};
  std::string summary;
  std::string suffix;                                  // ".gguf", in lower case
  std::function<Value(const std::string& path)> read;  // as tokenizer.json would say it
};

// What tokenizer.json would say of such a file.
Value tokenizer_file(const std::string& path);

// From the value of a tokenizer.json.
Tokenizer make_tokenizer(const Value& file, const std::string& place);

}  // namespace mase
