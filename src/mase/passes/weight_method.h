// SPDX-License-Identifier: Apache-2.0
// The one driver of methods that choose the weights of quantised products. Layers are worked on in
// the order of the graph, each with the inputs that the layers before it, already rounded, give it;
// the error before and after is measured on the rows the method saw and on rows it did not; a layer
// that would get worse on the latter is left as it was. What comes out lies on the format's grid.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "mase/formats/frozen.h"
#include "mase/ir/quantization.h"
#include "mase/passes/calibration.h"

namespace mase {

struct WeightProblem {
  const Quantizer& quantizer;
  const Tensor& weight;           // as it was before any rounding
  int64_t rows = 0, columns = 0;  // of the weight as a matrix; groups take consecutive rows
  const ProductInputs& inputs;
  uint64_t seed = 0;
  int threads = 1;
  std::vector<double> clips = {};  // shares of ranges that grids may be cut to; empty: none

  int64_t group_of(int64_t row) const { return row * inputs.groups / rows; }
  const Matrix& hessian_of(int64_t row) const {
    return inputs.hessians[static_cast<size_t>(group_of(row))];
  }
};

// Two thin products beside a layer: y = W x + B (A x).
struct ThinProducts {
  Tensor a, b;
  Quantization format;  // of both
};
// weight + share * B A, both as they are used.
Tensor with_thin_products(const Tensor& weight, const ThinProducts& beside, double share = 1,
                          int threads = 1);

struct WeightChoice {
  Tensor weight;       // on the grid; what the layer multiplies by
  Tensor scales_from;  // the tensor whose scales the grid has
  std::string why;     // not empty: no choice, for this reason
  bool stays = false;  // the layer keeps its weights, and rounds them to this grid
  std::optional<ThinProducts> beside = {};
};

struct WeightMethod {
  std::string name;
  std::function<WeightChoice(const WeightProblem& problem)> choose;
  // Why a layer is none of this method's, beyond what holds for all; empty if it is.
  std::function<std::string(const Graph& graph, const Node& node)> obstacle = {};
  std::vector<double> clips = {};  // see WeightProblem
};

// by, target_nodes, rows, heldout_rows, and those of the method.
Schema weight_method_schema(std::vector<Field> own = {});
PassResult improve_weights(Graph& graph, const Value& args, PassContext& context,
                           const WeightMethod& method);

// tr((a - w) H (a - w)') over all rows.
double output_error(const Tensor& weight, const Tensor& other, const ProductInputs& inputs,
                    int threads = 1);
// The same row by row, with H's factor of two.
std::vector<double> row_errors(const Tensor& weight, const Tensor& other,
                               const ProductInputs& inputs, int threads = 1);

// The tensor whose scales serve the weight best: the weight, with the ends of the range of each
// group drawn in to the share, of `clips`, with the least error of outputs. The weight itself where
// the grid has no scales of its own.
Tensor clipped_source(const WeightProblem& problem);
// Every value of the weight rounded to its own place of the grid.
Tensor rounded_to(const FrozenGrid& grid, const Tensor& weight, int threads = 1);
// The field `name`, a list of shares; `otherwise`: what is tried where it is not given.
Field clips_field(const char* name, const char* help, Value otherwise);
std::vector<double> clips_of(const Value& shares);

}  // namespace mase
