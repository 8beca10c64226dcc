// SPDX-License-Identifier: Apache-2.0
// Sequence: one pre-tokeniser after another.
#include "mase/text/part.h"

namespace mase::sequence_splitter {
namespace {

const Register<SplitterRecord> registered{
    {.name = "Sequence",
     .summary = "one pre-tokeniser after another",
     .schema = {{{.name = "pretokenizers", .type = FieldType::list, .required = true}}},
     .make = [](const Value& config) -> Splitter {
       std::vector<Splitter> parts;
       for (const Value& part : config["pretokenizers"].as_list())
         parts.push_back(make_splitter(part, "pre_tokenizer"));
       return [parts](Pieces& pieces) {
         for (const Splitter& part : parts) {
           if (pieces.bytes_wanted) pieces.map_bytes();
           part(pieces);
         }
       };
     }}};

}  // namespace
}  // namespace mase::sequence_splitter
