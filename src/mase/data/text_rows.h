// SPDX-License-Identifier: Apache-2.0
// Sentences, or pairs of them, with a label each, from the files that such data come in: CSV, TSV
// (cells as they stand, without quotes), JSON lines, and folders with a folder of texts for each
// class.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "mase/base/schema.h"
#include "mase/data/dataset.h"

namespace mase {

struct TextRows {
  std::vector<std::string> first, second;  // `second` is empty where there are no pairs
  std::vector<std::string> labels;
  size_t size() const { return first.size(); }
};

// Columns by name, or by number from 1 on in a file without a header. Empty: the usual names.
struct TextColumns {
  std::vector<std::string> texts = {};  // one or two
  std::string label = {};
};

// A sentence on each line, or two with a tab between them; there are no labels.
TextRows read_lines(const std::string& path);
TextRows read_text_rows(const std::string& path, const TextColumns& columns);

// How they become rows of token numbers, with the special tokens that the tokenizer puts there.
struct SentenceSpec {
  std::string tokenizer;
  int64_t length = 0;  // of every row; 0: of the longest, at most 512
};

// The data set of these rows; `test` empty: a share of the others.
Dataset sentence_dataset(const std::string& name, const std::string& place, const TextRows& train,
                         const TextRows& test, const SentenceSpec& spec,
                         const DatasetOptions& options);

// The rows of a text file with a sentence on each line, or two with a tab between them.
Tensor packed_sentences(const std::string& path, const SentenceSpec& spec, std::string& notice);

// Fields that every data set of sentences has: tokenizer, length.
std::vector<Field> sentence_fields();
SentenceSpec sentence_spec(const DatasetOptions& options);

// How rows of sentences hold what belongs to a token beside its number, so that a row is one array
// of numbers that single precision holds: padding is negative, tokens of a second sentence are
// moved up by this. Networks take them apart again (HfOptions::packed).
constexpr int64_t second_sentence = int64_t{1} << 22;
constexpr int64_t token_padding = -1;

}  // namespace mase
