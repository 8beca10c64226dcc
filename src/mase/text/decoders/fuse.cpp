// SPDX-License-Identifier: Apache-2.0
// Fuse: all texts become one.
#include "mase/text/part.h"

namespace mase::fuse_decoder {
namespace {

const Register<DecoderRecord> registered{
    {.name = "Fuse", .summary = "all texts become one", .make = [](const Value&) -> Decoder {
       return [](std::vector<std::string>& texts) { texts = {join(texts, "")}; };
     }}};

}  // namespace
}  // namespace mase::fuse_decoder
