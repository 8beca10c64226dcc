// SPDX-License-Identifier: Apache-2.0
// Networks of GGUF files: what a folder of Hugging Face would say of them, so that everything that
// takes the one takes the other.
#pragma once

#include <string>

#include "mase/models/hf.h"

namespace mase {

// Whether these are the settings of such a file.
bool is_gguf(const Value& settings);

// `settings` become the config.json, `tensors` get a folder's names and order of rows; their
// numbers stay. Settings that would change the network and are not known are an error.
void gguf_to_hf(Value& settings, TensorTable& tensors, const std::string& place);

}  // namespace mase
