// SPDX-License-Identifier: Apache-2.0
// BertPreTokenizer: words, and each punctuation mark by itself.
#include "mase/text/splitters/split.h"

namespace mase::bert_splitter {
namespace {

const Register<SplitterRecord> registered{{.name = "BertPreTokenizer",
                                           .summary = "words, and each punctuation mark by itself",
                                           .make = [](const Value&) {
                                             return pattern_splitter(
                                                 "[^\\s\\p{P}$+<=>^`|~]+|[\\p{P}$+<=>^`|~]",
                                                 SplitBehavior::removed, true);
                                           }}};

}  // namespace
}  // namespace mase::bert_splitter
