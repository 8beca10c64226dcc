// SPDX-License-Identifier: Apache-2.0
// BPEDecoder: spaces in the place of what marks the ends of words.
#include "mase/text/part.h"

namespace mase::bpe_decoder {
namespace {

const Register<DecoderRecord> registered{
    {.name = "BPEDecoder",
     .summary = "spaces in the place of marks at the ends of words",
     .schema = {{{.name = "suffix", .type = FieldType::any, .default_value = "</w>"}}},
     .make = [](const Value& config) -> Decoder {
       return [suffix = part_text(config["suffix"], "suffix")](std::vector<std::string>& texts) {
         for (size_t i = 0; i < texts.size() && !suffix.empty(); ++i)
           texts[i] = replace_all(texts[i], suffix, i + 1 == texts.size() ? "" : " ");
       };
     }}};

}  // namespace
}  // namespace mase::bpe_decoder
