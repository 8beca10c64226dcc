// SPDX-License-Identifier: Apache-2.0
// Low-rank adapters as the library PEFT keeps them: a folder with adapter_config.json and
// adapter_model.safetensors.
#pragma once

#include <string>
#include <vector>

#include "mase/io/read_limits.h"
#include "mase/ir/graph.h"

namespace mase {

struct PeftLayer {
  std::string path;  // of the linear layer, "bert.encoder.layer.0.attention.self.query"
  Tensor a, b;       // [rank, in], [out, rank]; float32
  double scale = 1;  // alpha / rank
};

struct PeftAdapter {
  std::vector<PeftLayer> layers;  // in the file's order
  double dropout = 0;
  TensorTable saved = {};  // tensors of other layers that were trained whole, by their names
};

// What the folder asks for and we do not have (DoRA, biases, ...) is an Error that names the key.
PeftAdapter read_peft(const std::string& folder, const ReadLimits& limits = {});

// A folder that PEFT loads. Layers whose rank or scale differ from the first one's are listed as
// PEFT lists them (rank_pattern, alpha_pattern).
void write_peft(const std::string& folder, const PeftAdapter& adapter);

}  // namespace mase
