// SPDX-License-Identifier: Apache-2.0
// Sentences in text files as token ids.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "mase/base/tensor.h"

namespace mase {

bool is_sentence_file(const std::string& path);  // by its ending: .txt

// The tokens of each line, of any number.
struct SentenceRows {
  std::vector<std::vector<int32_t>> rows;
  std::optional<int32_t> padding;
  int64_t cut = 0;  // how many were longer than allowed
};

// `vocabulary` is a tokenizer (tokenizer.json, vocab.json beside merges.txt, a folder of one), a
// text with a token on each line, or empty: the words are ids. A text that has [CLS] and [SEP] is a
// vocabulary of BERT, whose rules then hold: lower case, punctuation, special tokens around each
// sentence. `longest` 0: of any length; longer ones are cut, within their special tokens.
SentenceRows read_sentence_rows(const std::string& path, const std::string& vocabulary,
                                int64_t longest);
// The tokenizer that a folder has, or nothing.
std::string vocabulary_in(const std::string& folder);

// A sample on each line, int32 [samples, length]; `length` 0: that of the longest. `vocabulary` is
// a text with a token on each line; empty: the words are ids. Shorter samples are filled up with
// the vocabulary's padding, longer ones are cut; `notice` tells both.
Tensor read_sentences(const std::string& path, const std::string& vocabulary, int64_t length,
                      std::string& notice);

}  // namespace mase
