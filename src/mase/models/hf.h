// SPDX-License-Identifier: Apache-2.0
// Networks of Hugging Face folders: what a config.json describes, for BERT-like encoders.
#pragma once

#include "mase/models/model.h"

namespace mase {

// The encoder a config.json describes, with the parameter names of its checkpoint: whether it
// begins with "bert.", has a pooler, and a classifier on top. `tensors` says so; those that carry
// no weights (position_ids) are taken out. Results: the last hidden state, and what the pooler
// makes of it; or the classifier's logits. All positions are seen: there is no mask for padding.
Graph make_hf_network(const Value& config, TensorTable& tensors, const ModelInputs& inputs,
                      const std::string& place);

}  // namespace mase
