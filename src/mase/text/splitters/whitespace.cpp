// SPDX-License-Identifier: Apache-2.0
// Whitespace: words, and runs of what is neither a word nor white space.
#include "mase/text/splitters/split.h"

namespace mase::whitespace_splitter {
namespace {

// What is_word_character() holds: not \w, which has all numbers and no joiners.
constexpr const char* word =
    "\\p{L}\\p{M}\\p{Nd}\\p{Nl}\\p{Pc}\\x{24B6}-\\x{24E9}\\x{1F130}-\\x{1F149}\\x{1F150}-\\x{1F169}"
    "\\x{1F170}-\\x{1F189}\\x{200C}\\x{200D}";

const Register<SplitterRecord> registered{
    {.name = "Whitespace", .summary = "words, and runs of other signs", .make = [](const Value&) {
       return pattern_splitter(fmt::format("[{0}]+|[^{0}\\s]+", word).c_str(),
                               SplitBehavior::removed, true);
     }}};

}  // namespace
}  // namespace mase::whitespace_splitter
