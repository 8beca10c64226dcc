// SPDX-License-Identifier: Apache-2.0
// Precompiled: SentencePiece's table of what becomes of characters and of short runs of them. The
// table is a trie in two arrays (Darts) and the texts that it leads to, each ended by a zero byte.
#include <optional>

#include "mase/text/part.h"

namespace mase::precompiled_normalizer {
namespace {

constexpr size_t largest_table = size_t{1} << 24;  // bytes

std::string bytes_of_base64(const Value& value) {
  const std::string& text = value.as_string("precompiled_charsmap");
  std::string bytes;
  uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    int digit = -1;
    if (c >= 'A' && c <= 'Z') digit = c - 'A';
    if (c >= 'a' && c <= 'z') digit = c - 'a' + 26;
    if (c >= '0' && c <= '9') digit = c - '0' + 52;
    if (c == '+') digit = 62;
    if (c == '/') digit = 63;
    if (c == '=') break;
    if (digit < 0) throw Error(value.position(), "precompiled_charsmap", "is not base64");
    bits = bits << 6 | static_cast<uint32_t>(digit);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes += static_cast<char>(bits >> count & 0xFF);
  }
  if (bytes.size() > largest_table)
    throw Error(value.position(), "precompiled_charsmap", "is larger than 16 MB");
  return bytes;
}

class CharacterTable {
 public:
  explicit CharacterTable(const Value& value) {
    const std::string bytes = bytes_of_base64(value);
    const auto word = [&](size_t at) {
      uint32_t result = 0;
      for (size_t i = 0; i < 4; ++i)
        result |= static_cast<uint32_t>(static_cast<unsigned char>(bytes[at + i])) << (8 * i);
      return result;
    };
    const auto refuse = [&] {
      throw Error(value.position(), "precompiled_charsmap", "is no table of SentencePiece");
    };
    if (bytes.empty()) return;  // changes nothing
    if (bytes.size() < 4) refuse();
    const size_t size = word(0);
    if (size % 4 != 0 || size > bytes.size() - 4) refuse();
    for (size_t at = 4; at < 4 + size; at += 4) trie_.push_back(word(at));
    texts_ = bytes.substr(4 + size);
    if (first_invalid_utf8(texts_) < texts_.size()) refuse();
  }

  // What a text becomes whose beginning the table knows: of several beginnings the shortest counts,
  // as in the library.
  std::optional<std::string_view> changed(std::string_view text) const {
    size_t node = 0;
    if (!follow(node)) return {};
    for (const char c : text) {
      const auto byte = static_cast<unsigned char>(c);
      if (byte == 0) return {};
      node ^= byte;
      if (node >= trie_.size()) return {};
      const uint32_t unit = trie_[node];
      if ((unit & 0x800000FF) != byte || !follow(node)) return {};
      if ((unit >> 8 & 1) == 0) continue;
      if (node >= trie_.size()) return {};
      const size_t begin = trie_[node] & 0x7FFFFFFF;
      if (begin > texts_.size() || !begins_character(begin)) return {};
      const std::string_view rest = std::string_view(texts_).substr(begin);
      return rest.substr(0, rest.find('\0'));
    }
    return {};
  }

 private:
  bool follow(size_t& node) const {
    if (node >= trie_.size()) return false;
    const uint32_t unit = trie_[node];
    node ^= static_cast<size_t>(unit >> 10) << ((unit & 0x200) >> 6);
    return true;
  }
  bool begins_character(size_t at) const {
    return at == texts_.size() || (static_cast<unsigned char>(texts_[at]) & 0xC0) != 0x80;
  }

  std::vector<uint32_t> trie_;
  std::string texts_;
};

void add_changed(std::vector<CodeChange>& changes, std::string_view before,
                 std::string_view after) {
  const size_t first = changes.size();
  for (size_t at = 0; at < after.size();) {
    const CodePoint next = code_point_at(after, at);
    at += next.bytes;
    changes.push_back({next.code, 0});
  }
  const size_t old_count = count_code_points(before), new_count = changes.size() - first;
  for (size_t i = old_count; i < new_count; ++i) changes[first + i].change = 1;
  if (new_count < old_count && !changes.empty())
    changes.back().change -= static_cast<int32_t>(old_count - new_count);
}

Normalizer make(const Value& config) {
  return [table = CharacterTable(config["precompiled_charsmap"])](AlignedText& text) {
    constexpr size_t longest_run = 5;  // bytes of what is looked up together
    const std::string_view bytes = text.text();
    std::vector<CodeChange> changes;
    bool any = false;
    for (size_t at = 0; at < bytes.size();) {
      const size_t end = grapheme_end(bytes, at);
      const std::string_view run = bytes.substr(at, end - at);
      const auto together = run.size() <= longest_run ? table.changed(run) : std::nullopt;
      for (size_t i = 0; i < run.size();) {
        const std::string_view part = together ? run : run.substr(i, code_point_at(run, i).bytes);
        const auto after = together ? together : table.changed(part);
        any = any || after;
        if (after)
          add_changed(changes, part, *after);
        else
          changes.push_back({code_point_at(part, 0).code, 0});
        i += part.size();
      }
      at = end;
    }
    if (any) text.transform(changes);
  };
}

const Register<NormalizerRecord> registered{
    {.name = "Precompiled",
     .summary = "SentencePiece's table of characters",
     .schema = {{{.name = "precompiled_charsmap", .type = FieldType::any, .required = true}}},
     .make = make}};

}  // namespace
}  // namespace mase::precompiled_normalizer
