// SPDX-License-Identifier: Apache-2.0
#include "mase/text/aligned_text.h"

#include <algorithm>

namespace mase {

TextSpan AlignedText::original(size_t byte) const {
  if (changed_) return from_[byte];
  const auto at = static_cast<uint32_t>(byte);
  size_t begin = byte;
  while (begin > 0 && (static_cast<unsigned char>(text_[begin]) & 0xC0) == 0x80) --begin;
  const uint32_t bytes = code_point_at(text_, begin).bytes;
  return {place_ + at - static_cast<uint32_t>(byte - begin),
          place_ + static_cast<uint32_t>(begin) + bytes};
}

TextSpan AlignedText::original(TextSpan range) const {
  if (range.begin >= range.end) return {place_, place_};
  return {original(range.begin).begin, original(range.end - 1).end};
}

void AlignedText::list_places() {
  if (changed_) return;
  std::vector<TextSpan> from;
  from.reserve(text_.size());
  for (size_t at = 0; at < text_.size();) {
    const uint32_t bytes = code_point_at(text_, at).bytes;
    const uint32_t begin = place_ + static_cast<uint32_t>(at);
    from.insert(from.end(), bytes, TextSpan{begin, begin + bytes});
    at += bytes;
  }
  from_ = std::move(from);
  changed_ = true;
}

void AlignedText::transform(const std::vector<CodeChange>& changes, size_t removed) {
  list_places();
  std::string text;
  std::vector<TextSpan> from;
  text.reserve(text_.size());
  from.reserve(text_.size());
  size_t at = 0;
  const auto pass = [&](size_t count) {
    for (; count > 0 && at < text_.size(); --count) at += code_point_at(text_, at).bytes;
  };
  pass(removed);
  for (const CodeChange& change : changes) {
    const bool inserted = change.change > 0;
    TextSpan span;
    if (inserted && at > 0) span = from_[at - 1];
    if (!inserted && at < from_.size()) span = from_[at];
    if (!inserted) pass(1 + static_cast<size_t>(-change.change));
    append_utf8(text, change.code);
    from.insert(from.end(), utf8_bytes(change.code), span);
  }
  text_ = std::move(text);
  from_ = std::move(from);
}

void AlignedText::prepend(std::string_view text) {
  if (text_.empty() || text.empty()) return;
  list_places();
  from_.insert(from_.begin(), text.size(), from_.front());
  text_.insert(0, text);
}

void AlignedText::replace(const std::vector<TextSpan>& ranges, std::string_view with) {
  if (ranges.empty()) return;
  list_places();
  std::string text;
  std::vector<TextSpan> from;
  size_t at = 0;
  const auto keep_until = [&](size_t end) {
    text.append(text_, at, end - at);
    from.insert(from.end(), from_.begin() + static_cast<std::ptrdiff_t>(at),
                from_.begin() + static_cast<std::ptrdiff_t>(end));
  };
  for (const TextSpan& range : ranges) {
    keep_until(range.begin);
    text += with;
    from.insert(from.end(), with.size(), range.end > 0 ? from_[range.end - 1] : TextSpan{});
    at = range.end;
  }
  keep_until(text_.size());
  text_ = std::move(text);
  from_ = std::move(from);
}

void AlignedText::append(const AlignedText& other, TextSpan range) {
  list_places();
  for (uint32_t byte = range.begin; byte < range.end; ++byte) from_.push_back(other.original(byte));
  text_.append(other.text_, range.begin, range.end - range.begin);
}

}  // namespace mase
