// SPDX-License-Identifier: Apache-2.0
// Metaspace: spaces in the place of the visible character; none in front where one was put there.
#include "mase/text/splitters/metaspace.h"

namespace mase::metaspace_decoder {
namespace {

Decoder make(const Value& config) {
  return [keys = metaspace_keys(config)](std::vector<std::string>& texts) {
    for (size_t i = 0; i < texts.size(); ++i)
      texts[i] =
          replace_all(texts[i], keys.replacement, i == 0 && keys.scheme != "never" ? "" : " ");
  };
}

const Register<DecoderRecord> registered{{.name = "Metaspace",
                                          .summary = "spaces in the place of a visible character",
                                          .schema = metaspace_schema(),
                                          .make = make}};

}  // namespace
}  // namespace mase::metaspace_decoder
