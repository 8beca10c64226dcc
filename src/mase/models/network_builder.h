// SPDX-License-Identifier: Apache-2.0
// Builds networks with branches, module paths as PyTorch names them. Attributes that follow from
// the input (in_channels, num_features, in_features) are filled in.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "mase/models/model.h"

namespace mase {

class NetworkBuilder {
 public:
  // The sizes come from the data set, or are these defaults.
  NetworkBuilder(const std::string& name, const ModelInputs& inputs, Shape default_sample,
                 int64_t default_outputs);
  // Without an input: `placeholder` makes them. Parameters are zeros, and all of them together may
  // not have more than `most_values`, which a file could claim.
  NetworkBuilder(const std::string& name, int64_t most_values, std::string place);

  // How many values tensors of these names have: much larger ones are refused before memory is
  // taken.
  void expect(std::map<std::string, int64_t> counts) { counts_ = std::move(counts); }

  NodeId placeholder(const std::string& name, const Shape& sample, DType element);
  NodeId tensor(const std::string& tensor_name);  // of a layer that is there already
  NodeId input() const { return input_; }
  int64_t outputs() const { return outputs_; }
  Shape shape(NodeId node) const;  // with a batch of one

  NodeId module(const std::string& path, const std::string& op, Dict attributes, NodeId x);
  NodeId function(const std::string& op, std::vector<NodeId> inputs,
                  std::vector<Value> literals = {},
                  std::vector<std::pair<std::string, Value>> named = {});
  // A parameter of the network itself, normally distributed at first.
  NodeId parameter(const std::string& tensor_name, const Shape& shape, double deviation);
  Graph finish(NodeId result) { return finish(std::vector<NodeId>{result}); }
  Graph finish(std::vector<NodeId> results);

  NodeId buffer(const std::string& tensor_name, const Shape& shape);  // zeros
  // The usual layers.
  NodeId conv(const std::string& path, NodeId x, int64_t channels, int64_t kernel,
              int64_t stride = 1, int64_t padding = 0, bool bias = true, int64_t groups = 1);
  NodeId batch_norm(const std::string& path, NodeId x) {
    return module(path, "batch_norm2d", {}, x);
  }
  NodeId linear(const std::string& path, NodeId x, int64_t features) {
    return module(path, "linear", {{"out_features", features}}, x);
  }

 private:
  NodeId known(NodeId id, Shape shape);
  void charge(const Shape& shape, const std::string& name);

  Graph graph_;
  std::vector<Shape> shapes_;  // by node
  uint64_t seed_;
  bool values_;
  int64_t values_left_ = -1;  // negative: as many as one likes
  std::string place_ = {};
  std::map<std::string, int64_t> counts_ = {};
  NodeId input_ = -1;
  int64_t outputs_ = 0;
};

}  // namespace mase
