// SPDX-License-Identifier: Apache-2.0
// The one driver of methods that choose the weights of quantised products. Layers are worked on in
// the order of the graph, each with the inputs that the layers before it, already rounded, give it;
// the error before and after is measured on the rows the method saw and on rows it did not; a layer
// that would get worse on the latter is left as it was. What comes out lies on the format's grid.
#pragma once

#include <functional>
#include <string>

#include "mase/formats/frozen.h"
#include "mase/passes/calibration.h"

namespace mase {

struct WeightProblem {
  const Quantizer& quantizer;
  const Tensor& weight;           // as it was before any rounding
  int64_t rows = 0, columns = 0;  // of the weight as a matrix; groups take consecutive rows
  const ProductInputs& inputs;
  uint64_t seed = 0;

  const Matrix& hessian_of(int64_t row) const {
    return inputs.hessians[static_cast<size_t>(row * inputs.groups / rows)];
  }
};

struct WeightChoice {
  Tensor weight;       // on the grid
  Tensor scales_from;  // the tensor whose scales the grid has
  std::string why;     // not empty: no choice, for this reason
};

struct WeightMethod {
  std::string name;
  std::function<WeightChoice(const WeightProblem& problem)> choose;
};

// by, target_nodes, rows, heldout_rows, and those of the method.
Schema weight_method_schema(std::vector<Field> own = {});
PassResult improve_weights(Graph& graph, const Value& args, PassContext& context,
                           const WeightMethod& method);

// tr((a - w) H (a - w)') over all rows.
double output_error(const Tensor& weight, const Tensor& other, const ProductInputs& inputs);

}  // namespace mase
