// SPDX-License-Identifier: Apache-2.0
// Punctuation: punctuation marks apart.
#include "mase/text/splitters/split.h"

namespace mase::punctuation_splitter {
namespace {

const Register<SplitterRecord> registered{
    {.name = "Punctuation",
     .summary = "punctuation marks apart",
     .schema = {{behavior_field()}},
     .make = [](const Value& config) {
       return pattern_splitter("[\\p{P}$+<=>^`|~]", split_behavior(config["behavior"].as_string()));
     }}};

}  // namespace
}  // namespace mase::punctuation_splitter
