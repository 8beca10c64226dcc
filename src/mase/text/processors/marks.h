// SPDX-License-Identifier: Apache-2.0
// The two tokens that BERT's and RoBERTa's post-processors name, and what byte-level ones do to
// offsets.
#pragma once

#include "mase/text/part.h"

namespace mase {

// ["[SEP]", 3]
int32_t marked_token(const Value& mark, const char* key, const TokenVocabulary& vocabulary);

// Offsets without the spaces that tokens begin or end with.
OffsetTrimmer space_trimmer(bool add_prefix_space);

}  // namespace mase
