// SPDX-License-Identifier: Apache-2.0
// BertNormalizer: control characters out, white space to spaces, spaces around Chinese characters,
// accents off, lower case; each of these if the file says so.
#include <algorithm>

#include "mase/text/normalizers/lower.h"
#include "mase/text/part.h"

namespace mase::bert_normalizer {
namespace {

bool is_chinese(uint32_t code) {
  constexpr std::pair<uint32_t, uint32_t> blocks[] = {
      {0x4E00, 0x9FFF},   {0x3400, 0x4DBF},   {0x20000, 0x2A6DF}, {0x2A700, 0x2B73F},
      {0x2B740, 0x2B81F}, {0x2B920, 0x2CEAF}, {0xF900, 0xFAFF},   {0x2F800, 0x2FA1F}};
  return code >= 0x3400 && std::any_of(std::begin(blocks), std::end(blocks), [code](auto block) {
           return code >= block.first && code <= block.second;
         });
}

bool is_blank(uint32_t code) { return is_white_space(code); }

bool is_kept(uint32_t code) {
  if (code == '\t' || code == '\n' || code == '\r') return true;
  if (code < 0x7F) return code >= ' ';
  static const uint32_t control = categories_named("C") & ~categories_named("Cn");
  return code != 0xFFFD && (category_bit(code) & control) == 0;
}

void clean(AlignedText& text) {
  text.filter(is_kept);
  std::vector<CodeChange> changes;
  for (size_t at = 0; at < text.text().size();) {
    const CodePoint next = code_point_at(text.text(), at);
    at += next.bytes;
    changes.push_back({is_blank(next.code) ? ' ' : next.code, 0});
  }
  text.transform(changes);
}

void set_apart(AlignedText& text) {
  std::vector<CodeChange> changes;
  bool any = false;
  for (size_t at = 0; at < text.text().size();) {
    const CodePoint next = code_point_at(text.text(), at);
    at += next.bytes;
    if (!is_chinese(next.code)) {
      changes.push_back({next.code, 0});
      continue;
    }
    changes.insert(changes.end(), {{' ', 0}, {next.code, 1}, {' ', 1}});
    any = true;
  }
  if (any) text.transform(changes);
}

void strip_accents(AlignedText& text) {
  text.transform(normal_form(text.text(), NormalForm::nfd));
  static const uint32_t marks = categories_named("Mn");
  text.filter([](uint32_t code) { return (category_bit(code) & marks) == 0; });
}

Normalizer make(const Value& config) {
  const bool cleans = config["clean_text"].as_bool(), lowers = config["lowercase"].as_bool();
  const bool apart = config["handle_chinese_chars"].as_bool();
  const bool strips =
      config["strip_accents"].is_null() ? lowers : config["strip_accents"].as_bool();
  return [=](AlignedText& text) {
    if (is_ascii(text.text())) {  // nothing moves, unless control characters go
      if (cleans) {
        const std::string_view bytes = text.text();
        if (!std::all_of(bytes.begin(), bytes.end(),
                         [](char c) { return is_kept(static_cast<unsigned char>(c)); }))
          text.filter(is_kept);
        text.transform_bytes(
            [](char c) { return is_blank(static_cast<unsigned char>(c)) ? ' ' : c; });
      }
      if (lowers) lower_text(text);
      return;
    }
    if (cleans) clean(text);
    if (apart) set_apart(text);
    if (strips) strip_accents(text);
    if (lowers) lower_text(text);
  };
}

const Register<NormalizerRecord> registered{
    {.name = "BertNormalizer",
     .summary = "what BERT does to a text: control characters, Chinese, accents, lower case",
     .schema =
         {{{.name = "clean_text", .type = FieldType::boolean, .default_value = true},
           {.name = "handle_chinese_chars", .type = FieldType::boolean, .default_value = true},
           {.name = "strip_accents", .type = FieldType::boolean},
           {.name = "lowercase", .type = FieldType::boolean, .default_value = true}}},
     .make = make}};

}  // namespace
}  // namespace mase::bert_normalizer
