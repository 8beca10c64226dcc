// SPDX-License-Identifier: Apache-2.0
// StripAccents: marks out, as they stand; NFD before it takes letters apart.
#include "mase/text/part.h"

namespace mase::strip_accents_normalizer {
namespace {

const Register<NormalizerRecord> registered{
    {.name = "StripAccents",
     .summary = "marks that stand by themselves out",
     .make = [](const Value&) -> Normalizer {
       return [marks = categories_named("M")](AlignedText& text) {
         if (is_ascii(text.text())) return;
         text.filter([marks](uint32_t code) { return (category_bit(code) & marks) == 0; });
       };
     }}};

}  // namespace
}  // namespace mase::strip_accents_normalizer
