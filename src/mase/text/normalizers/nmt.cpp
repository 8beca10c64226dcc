// SPDX-License-Identifier: Apache-2.0
// Nmt: control characters out; line ends, marks of direction and other signs without a form are
// spaces (sentencepiece's rule for machine translation).
#include "mase/text/part.h"

namespace mase::nmt_normalizer {
namespace {

bool is_control(uint32_t code) {
  return (code >= 0x01 && code <= 0x08) || code == 0x0B || (code >= 0x0E && code <= 0x1F) ||
         code == 0x7F || code == 0x8F || code == 0x9F;
}

bool becomes_space(uint32_t code) {
  for (const uint32_t space :
       {0x09u, 0x0Au, 0x0Cu, 0x0Du, 0x1680u, 0x2028u, 0x2029u, 0x2581u, 0xFEFFu, 0xFFFDu})
    if (code == space) return true;
  return code >= 0x200B && code <= 0x200F;
}

void normalize(AlignedText& text) {
  text.filter([](uint32_t code) { return !is_control(code); });
  std::vector<CodeChange> changes;
  for (size_t at = 0; at < text.text().size();) {
    const CodePoint next = code_point_at(text.text(), at);
    at += next.bytes;
    changes.push_back({becomes_space(next.code) ? uint32_t{' '} : next.code, 0});
  }
  text.transform(changes);
}

const Register<NormalizerRecord> registered{
    {.name = "Nmt",
     .summary = "control characters out, signs without a form as spaces",
     .make = [](const Value&) -> Normalizer { return normalize; }}};

}  // namespace
}  // namespace mase::nmt_normalizer
