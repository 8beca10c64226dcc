// SPDX-License-Identifier: Apache-2.0
// Sequence: one post-processor after another, of which one has a template.
#include "mase/text/part.h"

namespace mase::sequence_processor {
namespace {

Processor make(const Value& config, const TokenVocabulary& vocabulary) {
  Processor result;
  std::vector<OffsetTrimmer> trims;
  for (const Value& part : config["processors"].as_list()) {
    Processor next = make_processor(part, "post_processor", vocabulary);
    if (!next.single.empty()) {
      if (!result.single.empty())
        throw Error(part.position(), "processors", "two of them put special tokens around a text");
      result.single = std::move(next.single);
      result.pair = std::move(next.pair);
    }
    if (next.trim) trims.push_back(std::move(next.trim));
  }
  if (!trims.empty())
    result.trim = [trims](Encoding& encoding, const std::vector<std::string_view>& texts) {
      for (const auto& trim : trims) trim(encoding, texts);
    };
  return result;
}

const Register<ProcessorRecord> registered{
    {.name = "Sequence",
     .summary = "one post-processor after another",
     .schema = {{{.name = "processors", .type = FieldType::list, .required = true}}},
     .make = make}};

}  // namespace
}  // namespace mase::sequence_processor
