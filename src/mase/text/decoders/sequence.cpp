// SPDX-License-Identifier: Apache-2.0
// Sequence: one decoder after another.
#include "mase/text/part.h"

namespace mase::sequence_decoder {
namespace {

const Register<DecoderRecord> registered{
    {.name = "Sequence",
     .summary = "one decoder after another",
     .schema = {{{.name = "decoders", .type = FieldType::list, .required = true}}},
     .make = [](const Value& config) -> Decoder {
       std::vector<Decoder> parts;
       for (const Value& part : config["decoders"].as_list())
         parts.push_back(make_decoder(part, "decoder"));
       return [parts](std::vector<std::string>& texts) {
         for (const Decoder& part : parts) part(texts);
       };
     }}};

}  // namespace
}  // namespace mase::sequence_decoder
