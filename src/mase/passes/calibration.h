// SPDX-License-Identifier: Apache-2.0
// What methods that choose roundings know about the inputs of products: second moments, means and
// ranges of every column of a weight, over rows that run through the network batch by batch. Memory
// is that of one batch and one matrix per input, which layers that take it share; sums are in
// double precision. Two sets of rows are kept apart: those a method sees, and those it is only
// judged on.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "mase/passes/dense.h"
#include "mase/passes/layer_stream.h"
#include "mase/passes/pass.h"

namespace mase {

// Fields `rows` and `heldout_rows`, for the schemas of passes.
std::vector<Field> calibration_fields();

struct CalibrationRows {
  std::vector<Tensor> seen, heldout;  // inputs of the graph
  bool drawn = false;                 // random numbers: there were no samples
  Value record() const;               // rows, heldout_rows, split
};
// An Error where there are fewer rows than were asked for, or than any method can use.
CalibrationRows calibration_rows(const Graph& graph, const Value& args, const PassContext& context);

// At most 32 of them: enough to see whether two networks are the same one.
std::vector<Tensor> few_rows(const std::vector<Tensor>& rows);

// The inputs of one product, for each of its groups (one, but for grouped convolutions).
struct ProductInputs {
  int64_t groups = 1, columns = 0;
  int64_t vectors = 0;           // input vectors: rows, tokens or positions of windows
  std::vector<Matrix> hessians;  // per group: 2 / vectors * sum of x x'
  std::vector<double> mean, mean_magnitude, largest;  // [groups * columns]
};

// Why a node is no product these methods know; empty if it is one: a layer that multiplies by a
// weight whose rows are its outputs.
std::string no_product_reason(const Graph& graph, const Node& node);

inline constexpr int64_t most_vectors_of_one = 1 << 14;
using InputsOfNodes = std::map<NodeId, std::shared_ptr<const ProductInputs>>;
// Of these nodes, all from one run of the rows. Of a convolution's positions at most `most_vectors`
// are taken, evenly.
InputsOfNodes product_inputs(const Graph& graph, const std::vector<NodeId>& nodes,
                             const std::vector<Tensor>& rows,
                             int64_t most_vectors = most_vectors_of_one, int threads = 1);

// The same of nodes with one input, from a stream that goes on from its place.
InputsOfNodes product_inputs(const Graph& graph, const std::vector<NodeId>& nodes,
                             LayerStream& stream);

}  // namespace mase
