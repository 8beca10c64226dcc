// SPDX-License-Identifier: Apache-2.0
#include "mase/text/part.h"

#include <algorithm>

namespace mase {
namespace {

constexpr int deepest_part = 16;

// Sequences hold parts that may be sequences.
struct PartDepth {
  static thread_local int depth;
  explicit PartDepth(const Value& part) {
    if (++depth > deepest_part) {
      --depth;
      throw Error(part.position(), "", "parts stand too deep in parts");
    }
  }
  ~PartDepth() { --depth; }
  PartDepth(const PartDepth&) = delete;
  PartDepth& operator=(const PartDepth&) = delete;
};
thread_local int PartDepth::depth = 0;

}  // namespace

Value part_config(const Value& part, const Schema& schema, const std::vector<std::string>& large,
                  const std::string& path) {
  Dict keys;
  for (const auto& [key, value] : part.as_dict())
    if (key != "type" && std::find(large.begin(), large.end(), key) == large.end())
      keys.add(key, value);
  Value given(std::move(keys));
  given.set_position(part.position());
  Value config = validate(given, schema, path);
  config.set_position(part.position());
  return config;
}

Normalizer make_normalizer(const Value& part, const std::string& path) {
  if (part.is_null()) return [](AlignedText&) {};
  const PartDepth depth(part);
  const auto& record = part_record<NormalizerRecord>(part, path);
  return record.make(part_config(part, record.schema, {}, path));
}

Splitter make_splitter(const Value& part, const std::string& path) {
  if (part.is_null()) return [](Pieces&) {};
  const PartDepth depth(part);
  const auto& record = part_record<SplitterRecord>(part, path);
  return record.make(part_config(part, record.schema, {}, path));
}

Decoder make_decoder(const Value& part, const std::string& path) {
  if (part.is_null()) return [](std::vector<std::string>& texts) { texts = {join(texts, " ")}; };
  const PartDepth depth(part);
  const auto& record = part_record<DecoderRecord>(part, path);
  return record.make(part_config(part, record.schema, {}, path));
}

TokenModel make_token_model(const Value& part, const std::string& path) {
  const auto& record = part_record<TokenModelRecord>(part, path);
  return record.make(part_config(part, record.schema, record.large_keys, path), part);
}

Processor make_processor(const Value& part, const std::string& path,
                         const TokenVocabulary& vocabulary) {
  if (part.is_null()) return {};
  const PartDepth depth(part);
  const auto& record = part_record<ProcessorRecord>(part, path);
  return record.make(part_config(part, record.schema, {}, path), vocabulary);
}

TextPattern read_part_pattern(const Value& pattern) {
  const std::string place = pattern.position().str();
  const auto one = [&](const char* key) {
    return pattern.is_dict() && pattern.as_dict().size() == 1 && pattern[key].is_string();
  };
  if (!one("Regex") && !one("String"))
    throw Error(pattern.position(), "pattern", "is neither a Regex nor a String");
  if (one("Regex")) return TextPattern(pattern["Regex"].as_string(), place);
  const std::string text = part_text(pattern["String"], "String");
  if (text.empty()) throw Error(pattern.position(), "pattern", "is empty");
  return TextPattern::literal(text, place);
}

std::string part_text(const Value& value, const char* key) {
  const std::string& text = value.as_string(key);
  if (first_invalid_utf8(text) < text.size()) throw Error(value.position(), key, "is not UTF-8");
  return text;
}

uint32_t part_character(const Value& value, const char* key) {
  const std::string text = part_text(value, key);
  if (count_code_points(text) != 1) throw Error(value.position(), key, "is not one character");
  return code_point_at(text, 0).code;
}

}  // namespace mase
