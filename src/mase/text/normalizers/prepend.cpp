// SPDX-License-Identifier: Apache-2.0
// Prepend: a text in front, unless there is nothing.
#include "mase/text/part.h"

namespace mase::prepend_normalizer {
namespace {

const Register<NormalizerRecord> registered{
    {.name = "Prepend",
     .summary = "a text in front",
     .schema = {{{.name = "prepend", .type = FieldType::any, .required = true}}},
     .make = [](const Value& config) -> Normalizer {
       return [front = part_text(config["prepend"], "prepend")](AlignedText& text) {
         text.prepend(front);
       };
     }}};

}  // namespace
}  // namespace mase::prepend_normalizer
