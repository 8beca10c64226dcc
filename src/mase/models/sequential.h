// SPDX-License-Identifier: Apache-2.0
// Builds sequential networks with the labs' names: seq_blocks.0, seq_blocks.1, ...
#pragma once

#include "mase/models/model.h"

namespace mase {

class Sequential {
 public:
  // The sizes come from the data set, or are these defaults. Samples of more than one dimension are
  // flattened first.
  Sequential(const std::string& name, const ModelInputs& inputs, Shape default_sample,
             int64_t default_outputs);

  Sequential& add(const std::string& op, Dict attributes);
  Sequential& linear(int64_t out_features);
  Sequential& batch_norm();
  Sequential& relu(bool inplace = true);  // the labs' nn.ReLU(16) means inplace=True

  int64_t features() const { return features_; }
  int64_t outputs() const { return outputs_; }
  Graph finish();

 private:
  Graph graph_;
  uint64_t seed_;
  NodeId last_ = -1;
  int64_t features_ = 0, outputs_ = 0;
  int next_ = 0;
};

}  // namespace mase
