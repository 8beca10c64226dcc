// SPDX-License-Identifier: Apache-2.0
#include "mase/data/token_rows.h"

namespace mase {
namespace {

bool is_described_as(const Dataset& dataset, const char* key, const char* word) {
  const Value& description = dataset.preprocessing.description;
  return description.is_dict() && description[key].is_string() &&
         description[key].as_string() == word;
}

}  // namespace

bool has_token_labels(const Dataset& dataset) { return dataset.train.labels.shape().size() == 2; }

bool has_packed_tokens(const Dataset& dataset) {
  return is_described_as(dataset, "kind", "sentences");
}

bool keeps_order(const Dataset& dataset) { return is_described_as(dataset, "order", "kept"); }

}  // namespace mase
