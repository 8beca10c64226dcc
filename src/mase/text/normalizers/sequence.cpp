// SPDX-License-Identifier: Apache-2.0
// Sequence: one normaliser after another.
#include "mase/text/part.h"

namespace mase::sequence_normalizer {
namespace {

const Register<NormalizerRecord> registered{
    {.name = "Sequence",
     .summary = "one normaliser after another",
     .schema = {{{.name = "normalizers", .type = FieldType::list, .required = true}}},
     .make = [](const Value& config) -> Normalizer {
       std::vector<Normalizer> parts;
       for (const Value& part : config["normalizers"].as_list())
         parts.push_back(make_normalizer(part, "normalizer"));
       return [parts](AlignedText& text) {
         for (const Normalizer& part : parts) part(text);
       };
     }}};

}  // namespace
}  // namespace mase::sequence_normalizer
