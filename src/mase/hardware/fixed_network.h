// SPDX-License-Identifier: Apache-2.0
// A multi-layer perceptron in fixed point, every number's format said: the form in which trainers
// of such networks hand them on (NAME.json with layer sizes and modes, NAME.safetensors with exact
// dyadic weights and k/i/f per feature), and its integer graph.
//   q(x) -> W, b -> ReLU -> q -> ...
#pragma once

#include <string>
#include <vector>

#include "mase/base/tensor.h"
#include "mase/base/value.h"
#include "mase/hardware/builder.h"
#include "mase/ir/graph.h"

namespace mase {

// A real number that is whole after multiplication by 2^frac.
struct Dyadic {
  int64_t mantissa = 0;  // odd, or 0
  int frac = 0;
};
Dyadic dyadic(double value, const std::string& place);  // an error for what is not finite

struct FixedLayer {
  std::string name;
  std::vector<FixedFormat> inputs;           // one per input feature
  std::vector<std::vector<double>> weights;  // [in][out], exact
  std::vector<double> bias;                  // [out], or empty
  bool relu = false;
};

struct FixedNetwork {
  std::string name;
  std::vector<FixedLayer> layers;
  std::vector<FixedFormat> outputs;  // empty: the last sums as they are
};

// Every mistake of the files is an error that names `place`.
FixedNetwork fixed_network(const std::string& name, const Value& description,
                           const TensorTable& tensors, const std::string& place);

// The integers it computes, nothing shared yet. Inputs are the codes of the first layer's formats.
IntegerGraph lower(const FixedNetwork& network);

// y[o] = sum over i of weights[i][o] x[i] + bias[o], at one common binary point per output.
std::vector<IntegerId> lower_linear(IntegerBuilder& builder, const std::vector<IntegerId>& inputs,
                                    const std::vector<std::vector<double>>& weights,
                                    const std::vector<double>& bias, const std::string& place);

}  // namespace mase
