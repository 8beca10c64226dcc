// SPDX-License-Identifier: Apache-2.0
// What tokenizers ask of Unicode: UTF-8 in and out, general categories, lower case and the four
// normal forms. The tables are utf8proc's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mase {

// A code point and the bytes it takes. `at` is inside of valid UTF-8.
struct CodePoint {
  uint32_t code;
  uint32_t bytes;
};
CodePoint code_point_at(std::string_view text, size_t at);
void append_utf8(std::string& text, uint32_t code);
inline uint32_t utf8_bytes(uint32_t code) {
  return code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
}

bool is_ascii(std::string_view text);
// The first byte that belongs to no code point, or the text's size.
size_t first_invalid_utf8(std::string_view text);
// What is no code point becomes U+FFFD, one for each longest beginning of one.
std::string lossy_utf8(std::string_view bytes);
size_t count_code_points(std::string_view text);

// General categories as bits, so that a set of them is a number: bit 1 is Lu, ... as utf8proc
// counts them; bit 0 is Cn, what is assigned to nothing.
uint32_t category_bit(uint32_t code);
// The categories that a name such as "L", "Lu" or "L&" stands for; 0 for an unknown name.
uint32_t categories_named(std::string_view name);

bool is_white_space(uint32_t code);
// Signs of letters that are no letters: letters in circles and squares.
const std::vector<std::pair<uint32_t, uint32_t>>& letter_sign_ranges();
// A character of a word: letters and their signs, marks, digits, connectors, and what joins them.
bool is_word_character(uint32_t code);
// As bytes and pairs of first and last code points.
const std::vector<std::pair<uint32_t, uint32_t>>& white_space_ranges();

// One code point at most two: capital I with a dot is i and a dot above.
std::pair<uint32_t, uint32_t> lower_case_of(uint32_t code);  // second: 0 if there is one

enum class NormalForm { nfc, nfd, nfkc, nfkd };
// What a text becomes: code points, and what each did to the code points of the text: 0 took the
// place of the next one, 1 was put in, -n took the place of the next and of n behind it.
struct CodeChange {
  uint32_t code;
  int32_t change;
};
std::vector<CodeChange> normal_form(std::string_view text, NormalForm form);

}  // namespace mase
