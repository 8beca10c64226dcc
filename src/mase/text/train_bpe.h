// SPDX-License-Identifier: Apache-2.0
// Learns a byte-level BPE tokenizer from texts: the pair of neighbouring tokens that is seen most
// becomes a token, again and again (Sennrich, Haddow and Birch, 2016). Of pairs seen equally often
// the one of the lower ids comes first, as in Hugging Face's library: the same texts give the same
// tokens.
#pragma once

#include <string>
#include <vector>

#include "mase/base/value.h"

namespace mase {

struct BpeTraining {
  int64_t size = 30000;     // tokens, special ones and the 256 bytes among them
  int64_t least_count = 2;  // pairs seen less often are not joined
  std::vector<std::string> special = {"<|endoftext|>"};
};

// What a tokenizer.json of it holds. Texts are UTF-8; a pair never reaches from one to the next.
Value train_byte_level_bpe(const std::vector<std::string>& texts, const BpeTraining& training);

}  // namespace mase
