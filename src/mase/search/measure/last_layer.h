// SPDX-License-Identifier: Apache-2.0
// The last layer of a classifier with many sets of formats at once. In an exhaustive search most
// configurations differ there alone: its input is laid out once for all of them, rounded once for
// each format of the data, and a block of rows stays in the cache while every configuration meets
// it. The numbers are those of the compiled network to the last bit: the same kernels on the same
// batches, or integers where sums are exact either way.
//   x -> round -> w x + b (-> batch norm) (-> relu) -> cross-entropy and hits, for each w and b
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "mase/base/tensor.h"
#include "mase/data/dataset.h"
#include "mase/ir/graph.h"
#include "mase/train/evaluation.h"

namespace mase::search {

// Values of a parameter as its layer multiplies with them; nothing if they depend on more than the
// format, empty if the layer has no such parameter.
std::optional<std::vector<float>> rounded_values(const Module& module, const std::string& name);

class LastLayer {
 public:
  // The layer at this place of the graph's order, if it is linear, at most a batch norm and a relu
  // follow, and the loss is a plain cross-entropy.
  static std::optional<LastLayer> at(const Graph& graph, size_t place, const Dataset& dataset);

  struct Variant {
    QuantizerPtr data;  // null: as it is
    std::vector<float> weight, bias;
    // Both operands in fixed point of at most 8 bits, with sums that float32 holds exactly: weights
    // as words of four bytes, what the sums of each output begin with, and the unit of the sums.
    bool integers = false;
    std::vector<uint32_t> words = {};
    std::vector<int32_t> starts = {};
    float unit = 1;
  };
  // The layer as this graph has it; nothing if its rounding is not one of values on their own.
  std::optional<Variant> variant(const Graph& graph) const;

  // Variants whose data are rounded alike, and where their scores go.
  struct Group {
    std::vector<const Variant*> variants;
    std::vector<Score*> scores;
  };
  // `input` gives the layer's input for rows [first, first + n), row by row.
  using Input = std::function<const float*(int64_t first, int64_t n)>;
  // Without losses only the hits are counted, which is a good deal faster.
  void score(const Input& input, std::span<const int32_t> labels, int64_t batch_size, bool losses,
             std::span<const Group> groups) const;

 private:
  struct Norm {
    std::vector<float> mean, inverse, weight, bias;
    std::vector<float> factor, shift;  // inverse * weight and bias, as norm_apply computes them
    double eps;
  };
  class Block;

  NodeId node_ = -1;
  std::vector<NodeId> after_;  // batch norm, relu
  int64_t in_ = 0, out_ = 0;
  std::optional<Norm> norm_;
  bool relu_ = false;
};

}  // namespace mase::search
