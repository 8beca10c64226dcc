// SPDX-License-Identifier: Apache-2.0
// What data sets of texts have beside others. Their preprocessing says it, and so do the files of
// networks that were trained on them.
#pragma once

#include "mase/data/dataset.h"

namespace mase {

// Each token of a row has a class: labels are [rows, tokens], negative where one does not count.
bool has_token_labels(const Dataset& dataset);

// Rows are sentences as data/text_rows.h packs them.
bool has_packed_tokens(const Dataset& dataset);

// Training takes the rows as they stand, in every epoch.
bool keeps_order(const Dataset& dataset);

}  // namespace mase
