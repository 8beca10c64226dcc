// SPDX-License-Identifier: Apache-2.0
// Digits: numbers apart, or each of their digits.
#include "mase/text/splitters/split.h"

namespace mase::digits_splitter {
namespace {

const Register<SplitterRecord> registered{
    {.name = "Digits",
     .summary = "numbers, or each digit, apart",
     .schema =
         {{{.name = "individual_digits", .type = FieldType::boolean, .default_value = false}}},
     .make = [](const Value& config) {
       return pattern_splitter("\\p{N}", config["individual_digits"].as_bool()
                                             ? SplitBehavior::isolated
                                             : SplitBehavior::contiguous);
     }}};

}  // namespace
}  // namespace mase::digits_splitter
