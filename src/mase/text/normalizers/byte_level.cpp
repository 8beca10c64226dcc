// SPDX-License-Identifier: Apache-2.0
// ByteLevel: bytes as the characters that stand for them.
#include "mase/text/part.h"

namespace mase::byte_level_normalizer {
namespace {

const Register<NormalizerRecord> registered{
    {.name = "ByteLevel",
     .summary = "bytes as characters that stand for them",
     .make = [](const Value&) -> Normalizer {
       return [](AlignedText& text) {
         const auto size = static_cast<uint32_t>(text.text().size());
         Pieces whole{.text = std::move(text), .pieces = {{0, size}}};
         whole.map_bytes();
         text = std::move(whole.text);
       };
     }}};

}  // namespace
}  // namespace mase::byte_level_normalizer
