// SPDX-License-Identifier: Apache-2.0
#include "mase/text/encoding.h"

#include <algorithm>

#include "mase/base/error.h"

namespace mase {

std::pair<size_t, size_t> kept_tokens(size_t first, size_t second, bool pair, int64_t room,
                                      CutStrategy strategy) {
  const size_t most = room > 0 ? static_cast<size_t>(room) : 0, total = first + second;
  if (most == 0) return {0, 0};
  if (total <= most) return {first, second};
  const size_t excess = total - most;
  if (strategy == CutStrategy::only_second && !pair)
    throw Error("truncation", "the second sentence is to be cut, and there is none",
                "choose longest_first or only_first");
  if (strategy != CutStrategy::longest_first) {
    size_t& cut = strategy == CutStrategy::only_first ? first : second;
    if (cut <= excess)
      throw Error("truncation",
                  fmt::format("a sentence of {} tokens would have to lose {}", cut, excess),
                  "choose longest_first or a larger length");
    cut -= excess;
    return {first, second};
  }
  if (!pair) return {most, 0};
  size_t shorter = std::min(first, second);
  size_t longer = shorter > most ? shorter : std::max(shorter, most - shorter);
  if (shorter + longer > most) {
    shorter = most / 2;
    longer = shorter + most % 2;
  }
  return first > second ? std::pair{longer, shorter} : std::pair{shorter, longer};
}

std::vector<TextSpan> token_windows(size_t tokens, size_t length, int64_t stride, bool left) {
  if (length >= tokens) return {{0, static_cast<uint32_t>(tokens)}};
  if (length == 0) return {{0, 0}, {0, static_cast<uint32_t>(tokens)}};
  if (stride < 0 || static_cast<size_t>(stride) >= length)
    throw Error("truncation", fmt::format("a stride of {} in windows of {} tokens", stride, length),
                "the stride is less than the length without special tokens");
  const size_t step = length - static_cast<size_t>(stride);
  std::vector<TextSpan> windows;
  for (size_t passed = 0;; passed += step) {
    const size_t far = std::min(passed + length, tokens);
    if (left)
      windows.push_back(
          {static_cast<uint32_t>(tokens - far), static_cast<uint32_t>(tokens - passed)});
    else
      windows.push_back({static_cast<uint32_t>(passed), static_cast<uint32_t>(far)});
    if (far == tokens) return windows;
  }
}

Encoding cut_encoding(const Encoding& encoding, TextSpan tokens) {
  const auto part = [&](const auto& list) {
    return std::decay_t<decltype(list)>(list.begin() + tokens.begin, list.begin() + tokens.end);
  };
  return {.ids = part(encoding.ids),
          .types = part(encoding.types),
          .mask = part(encoding.mask),
          .special = part(encoding.special),
          .offsets = part(encoding.offsets),
          .sentences = part(encoding.sentences),
          .windows = {}};
}

Encoding in_windows(const Encoding& encoding, size_t length, const Truncation& truncation) {
  const std::vector<TextSpan> windows =
      token_windows(encoding.size(), length, truncation.stride, truncation.left);
  Encoding result = cut_encoding(encoding, windows[0]);
  for (size_t i = 1; i < windows.size(); ++i)
    result.windows.push_back(cut_encoding(encoding, windows[i]));
  return result;
}

namespace {

void append_tokens(Encoding& to, const Encoding& from) {
  const auto join = [](auto& list, const auto& more) {
    list.insert(list.end(), more.begin(), more.end());
  };
  join(to.ids, from.ids);
  join(to.types, from.types);
  join(to.mask, from.mask);
  join(to.special, from.special);
  join(to.offsets, from.offsets);
  join(to.sentences, from.sentences);
}

Encoding joined(const Encoding& first, const Encoding& second) {
  Encoding result = cut_encoding(first, {0, static_cast<uint32_t>(first.size())});
  append_tokens(result, second);
  return result;
}

}  // namespace

void append_encoding(Encoding& to, const Encoding& from) {
  constexpr size_t most = size_t{1} << 20;
  if ((to.windows.size() + 1) * (from.windows.size() + 1) > most)
    throw Error("truncation",
                fmt::format("{} windows with {} others each", to.windows.size() + 1,
                            from.windows.size() + 1),
                "give a larger length");
  std::vector<Encoding> windows;
  for (const Encoding& own : to.windows) {
    windows.push_back(joined(own, from));
    for (const Encoding& other : from.windows) windows.push_back(joined(own, other));
  }
  for (const Encoding& other : from.windows) windows.push_back(joined(to, other));
  append_tokens(to, from);
  to.windows = std::move(windows);
}

void pad_encodings(std::vector<Encoding>& batch, const Padding& padding) {
  size_t length = static_cast<size_t>(std::max<int64_t>(0, padding.length));
  if (length == 0)
    for (const Encoding& encoding : batch) length = std::max(length, encoding.size());
  if (padding.multiple > 0 && length % static_cast<size_t>(padding.multiple) != 0)
    length +=
        static_cast<size_t>(padding.multiple) - length % static_cast<size_t>(padding.multiple);
  for (Encoding& encoding : batch) {
    for (Encoding& window : encoding.windows) {
      std::vector<Encoding> one(1, std::move(window));
      Padding fixed = padding;
      fixed.length = static_cast<int64_t>(length);
      pad_encodings(one, fixed);
      window = std::move(one[0]);
    }
    if (encoding.size() >= length) continue;
    const size_t count = length - encoding.size();
    const auto fill = [&](auto& list, auto value) {
      list.insert(padding.left ? list.begin() : list.end(), count, value);
    };
    fill(encoding.ids, padding.id);
    fill(encoding.types, padding.type);
    fill(encoding.mask, uint8_t{0});
    fill(encoding.special, uint8_t{1});
    fill(encoding.offsets, TextSpan{});
    fill(encoding.sentences, -1);
  }
}

}  // namespace mase
