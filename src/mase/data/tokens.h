// SPDX-License-Identifier: Apache-2.0
// Sentences in text files as token ids.
#pragma once

#include <string>

#include "mase/base/tensor.h"

namespace mase {

bool is_sentence_file(const std::string& path);  // by its ending: .txt

// A sample on each line, int32 [samples, length]; `length` 0: that of the longest. `vocabulary` is
// a text with a token on each line; empty: the words are ids. Shorter samples are filled up with
// the vocabulary's padding, longer ones are cut, which `notice` tells.
Tensor read_sentences(const std::string& path, const std::string& vocabulary, int64_t length,
                      std::string& notice);

}  // namespace mase
