// SPDX-License-Identifier: Apache-2.0
#include "mase/models/sequential.h"

namespace mase {

Sequential::Sequential(const std::string& name, const ModelInputs& inputs, Shape default_sample,
                       int64_t default_outputs)
    : seed_(inputs.seed), outputs_(inputs.outputs > 0 ? inputs.outputs : default_outputs) {
  graph_.name = name;
  Shape sample = inputs.sample_shape.empty() ? default_sample : inputs.sample_shape;
  features_ = element_count(sample);
  const bool flat = sample.size() == 1;
  last_ = graph_.add_placeholder("x", std::move(sample));
  if (!flat) last_ = graph_.call_function("flatten", {Argument::node(last_), Argument::literal(1)});
}

Sequential& Sequential::add(const std::string& op, Dict attributes) {
  const std::string path = fmt::format("seq_blocks.{}", next_++);
  last_ = graph_.add_module(path, make_module(op, std::move(attributes), seed_, path), {last_});
  return *this;
}

Sequential& Sequential::linear(int64_t out_features) {
  add("linear", {{"in_features", features_}, {"out_features", out_features}});
  features_ = out_features;
  return *this;
}

Sequential& Sequential::batch_norm() { return add("batch_norm1d", {{"num_features", features_}}); }

Sequential& Sequential::relu(bool inplace) { return add("relu", {{"inplace", inplace}}); }

Graph Sequential::finish() {
  graph_.add_output({last_});
  return std::move(graph_);
}

}  // namespace mase
