// SPDX-License-Identifier: Apache-2.0
// Lowercase: each character by itself, so a sigma at the end of a word is as any other.
#include "mase/text/normalizers/lower.h"
#include "mase/text/part.h"

namespace mase {

void lower_text(AlignedText& text) {
  if (is_ascii(text.text())) {
    text.transform_bytes(
        [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
    return;
  }
  std::vector<CodeChange> changes;
  for (size_t at = 0; at < text.text().size();) {
    const CodePoint next = code_point_at(text.text(), at);
    at += next.bytes;
    const auto [first, second] = lower_case_of(next.code);
    changes.push_back({first, 0});
    if (second != 0) changes.push_back({second, 1});
  }
  text.transform(changes);
}

}  // namespace mase

namespace mase::lowercase_normalizer {
namespace {

const Register<NormalizerRecord> registered{
    {.name = "Lowercase", .summary = "lower case", .make = [](const Value&) -> Normalizer {
       return lower_text;
     }}};

}  // namespace
}  // namespace mase::lowercase_normalizer
