// SPDX-License-Identifier: Apache-2.0
#include "mase/text/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>

#include "mase/base/error.h"

namespace mase {
namespace {

// The length of the code point that begins here, or 0 and in `broken` the bytes that could have
// begun one.
size_t sequence_at(std::string_view text, size_t at, size_t& broken) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(at);
  broken = 1;
  if (first < 0x80) return 1;
  const size_t length = first < 0xC2   ? 0
                        : first < 0xE0 ? 2
                        : first < 0xF0 ? 3
                        : first < 0xF5 ? 4
                                       : 0;
  if (length == 0) return 0;
  for (size_t i = 1; i < length; ++i) {
    if (at + i >= text.size()) return 0;
    unsigned char least = 0x80, most = 0xBF;
    if (i == 1 && first == 0xE0) least = 0xA0;  // longer than it need be
    if (i == 1 && first == 0xED) most = 0x9F;   // half of a pair
    if (i == 1 && first == 0xF0) least = 0x90;
    if (i == 1 && first == 0xF4) most = 0x8F;  // beyond the last code point
    if (byte(at + i) < least || byte(at + i) > most) return 0;
    broken = i + 1;
  }
  return length;
}

constexpr std::array category_names{"Cn", "Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me", "Nd",
                                    "Nl", "No", "Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po", "Sm",
                                    "Sc", "Sk", "So", "Zs", "Zl", "Zp", "Cc", "Cf", "Cs", "Co"};

uint8_t combining_class(uint32_t code) {
  return code < 0x300
             ? 0
             : static_cast<uint8_t>(
                   utf8proc_get_property(static_cast<utf8proc_int32_t>(code))->combining_class);
}

// The code point that two are together, or 0.
uint32_t composed(uint32_t first, uint32_t second) {
  utf8proc_int32_t pair[2] = {static_cast<utf8proc_int32_t>(first),
                              static_cast<utf8proc_int32_t>(second)};
  const auto options = static_cast<utf8proc_option_t>(UTF8PROC_COMPOSE | UTF8PROC_STABLE);
  return utf8proc_normalize_utf32(pair, 2, options) == 1 ? static_cast<uint32_t>(pair[0]) : 0;
}

std::vector<CodeChange> decomposed(std::string_view text, bool compatible) {
  std::vector<CodeChange> result;
  result.reserve(text.size());
  const auto options = static_cast<utf8proc_option_t>(UTF8PROC_DECOMPOSE | UTF8PROC_STABLE |
                                                      (compatible ? UTF8PROC_COMPAT : 0));
  size_t marks = 0;  // where marks that may change places begin
  for (size_t at = 0; at < text.size();) {
    const CodePoint next = code_point_at(text, at);
    at += next.bytes;
    std::array<utf8proc_int32_t, 64> parts;
    int boundary = 0;
    const utf8proc_ssize_t count =
        utf8proc_decompose_char(static_cast<utf8proc_int32_t>(next.code), parts.data(),
                                static_cast<utf8proc_ssize_t>(parts.size()), options, &boundary);
    MASE_CHECK(count > 0 && count <= static_cast<utf8proc_ssize_t>(parts.size()),
               "U+{:04X} comes apart into {}", next.code, count);
    for (utf8proc_ssize_t i = 0; i < count; ++i) {
      const CodeChange part{static_cast<uint32_t>(parts[static_cast<size_t>(i)]), i > 0 ? 1 : 0};
      const uint8_t order = combining_class(part.code);
      result.push_back(part);
      if (order == 0) {
        marks = result.size();
        continue;
      }
      size_t place = result.size() - 1;
      for (; place > marks && combining_class(result[place - 1].code) > order; --place)
        result[place] = result[place - 1];
      result[place] = part;
    }
  }
  return result;
}

std::vector<CodeChange> recomposed(const std::vector<CodeChange>& parts) {
  std::vector<CodeChange> result;
  result.reserve(parts.size());
  size_t starter = SIZE_MAX;  // the one that others may join
  int last = -1;              // combining class of the last one that did not
  for (const CodeChange& part : parts) {
    const uint8_t order = combining_class(part.code);
    // One of the same class or a higher one between them keeps them apart.
    if (starter != SIZE_MAX && (last < 0 || last < order)) {
      if (const uint32_t both = composed(result[starter].code, part.code)) {
        result[starter] = {both, result[starter].change + part.change - 1};
        continue;
      }
    }
    result.push_back(part);
    if (order == 0) {
      starter = result.size() - 1;
      last = -1;
    } else {
      last = order;
    }
  }
  return result;
}

}  // namespace

CodePoint code_point_at(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) {
    return static_cast<uint32_t>(static_cast<unsigned char>(text[at + i]));
  };
  const uint32_t first = byte(0);
  if (first < 0x80) return {first, 1};
  if (first < 0xE0) return {(first & 0x1F) << 6 | (byte(1) & 0x3F), 2};
  if (first < 0xF0) return {(first & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F), 3};
  return {(first & 0x07) << 18 | (byte(1) & 0x3F) << 12 | (byte(2) & 0x3F) << 6 | (byte(3) & 0x3F),
          4};
}

void append_utf8(std::string& text, uint32_t code) {
  const auto add = [&](uint32_t byte) { text += static_cast<char>(byte); };
  if (code < 0x80) {
    add(code);
  } else if (code < 0x800) {
    add(0xC0 | code >> 6);
    add(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    add(0xE0 | code >> 12);
    add(0x80 | (code >> 6 & 0x3F));
    add(0x80 | (code & 0x3F));
  } else {
    add(0xF0 | code >> 18);
    add(0x80 | (code >> 12 & 0x3F));
    add(0x80 | (code >> 6 & 0x3F));
    add(0x80 | (code & 0x3F));
  }
}

bool is_ascii(std::string_view text) {
  unsigned char all = 0;
  for (const char c : text) all |= static_cast<unsigned char>(c);
  return all < 0x80;
}

size_t first_invalid_utf8(std::string_view text) {
  size_t broken = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t length = sequence_at(text, at, broken);
    if (length == 0) return at;
    at += length;
  }
  return text.size();
}

std::string lossy_utf8(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size());
  size_t broken = 0;
  for (size_t at = 0; at < bytes.size();) {
    const size_t length = sequence_at(bytes, at, broken);
    if (length == 0)
      text += "\xEF\xBF\xBD";
    else
      text += bytes.substr(at, length);
    at += length == 0 ? broken : length;
  }
  return text;
}

size_t count_code_points(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

uint32_t category_bit(uint32_t code) {
  return uint32_t{1} << utf8proc_category(static_cast<utf8proc_int32_t>(code));
}

uint32_t categories_named(std::string_view name) {
  if (name == "L&" || name == "LC")
    return categories_named("Lu") | categories_named("Ll") | categories_named("Lt");
  uint32_t bits = 0;
  for (size_t i = 0; i < category_names.size(); ++i)
    if (name.size() <= 2 && !name.empty() &&
        std::string_view(category_names[i]).substr(0, name.size()) == name)
      bits |= uint32_t{1} << i;
  return bits;
}

const std::vector<std::pair<uint32_t, uint32_t>>& white_space_ranges() {
  static const std::vector<std::pair<uint32_t, uint32_t>> ranges{
      {0x09, 0x0D},     {0x20, 0x20},     {0x85, 0x85},     {0xA0, 0xA0},     {0x1680, 0x1680},
      {0x2000, 0x200A}, {0x2028, 0x2029}, {0x202F, 0x202F}, {0x205F, 0x205F}, {0x3000, 0x3000}};
  return ranges;
}

const std::vector<std::pair<uint32_t, uint32_t>>& letter_sign_ranges() {
  static const std::vector<std::pair<uint32_t, uint32_t>> ranges{
      {0x24B6, 0x24E9}, {0x1F130, 0x1F149}, {0x1F150, 0x1F169}, {0x1F170, 0x1F189}};
  return ranges;
}

bool is_word_character(uint32_t code) {
  static const uint32_t word = categories_named("L") | categories_named("M") |
                               categories_named("Nd") | categories_named("Nl") |
                               categories_named("Pc");
  const auto& signs = letter_sign_ranges();
  return (category_bit(code) & word) != 0 || code == 0x200C || code == 0x200D ||
         std::any_of(signs.begin(), signs.end(), [code](const auto& range) {
           return code >= range.first && code <= range.second;
         });
}

bool is_white_space(uint32_t code) {
  if (code < 0x85) return code == ' ' || (code >= 9 && code <= 13);
  const auto& ranges = white_space_ranges();
  return std::any_of(ranges.begin(), ranges.end(), [code](const auto& range) {
    return code >= range.first && code <= range.second;
  });
}

std::pair<uint32_t, uint32_t> lower_case_of(uint32_t code) {
  if (code < 0x80) return {code >= 'A' && code <= 'Z' ? code + 32 : code, 0};
  constexpr uint32_t dotted_capital = 0x130, dot_above = 0x307;
  if (code == dotted_capital) return {'i', dot_above};
  return {static_cast<uint32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(code))), 0};
}

std::vector<CodeChange> normal_form(std::string_view text, NormalForm form) {
  const bool compatible = form == NormalForm::nfkc || form == NormalForm::nfkd;
  std::vector<CodeChange> parts = decomposed(text, compatible);
  return form == NormalForm::nfc || form == NormalForm::nfkc ? recomposed(parts) : parts;
}

}  // namespace mase
