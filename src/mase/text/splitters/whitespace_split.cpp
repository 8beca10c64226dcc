// SPDX-License-Identifier: Apache-2.0
// WhitespaceSplit: cuts at white space.
#include "mase/text/splitters/split.h"

namespace mase::whitespace_split_splitter {
namespace {

const Register<SplitterRecord> registered{
    {.name = "WhitespaceSplit", .summary = "cuts at white space", .make = [](const Value&) {
       return pattern_splitter("\\s+", SplitBehavior::removed);
     }}};

}  // namespace
}  // namespace mase::whitespace_split_splitter
