// SPDX-License-Identifier: Apache-2.0
// Sums of products with rounded weights, for every vector of features: a layer over a sequence has
// the same sums at each of its positions.
#include <algorithm>

#include "mase/hardware/lower/lower_products.h"

namespace mase::linear_lowering {
namespace {

std::optional<std::vector<IntegerId>> lower(const IntegerCall& call) {
  const LayerParameters layer = layer_parameters(call);
  const std::vector<IntegerId>& inputs = call.inputs[0];
  const size_t out = static_cast<size_t>(layer.shape[0]), in = static_cast<size_t>(layer.shape[1]);
  MASE_CHECK(inputs.size() % in == 0, "{} features for {} inputs", inputs.size(), in);
  const size_t positions = inputs.size() / in;
  LayerSums sums(call);
  std::vector<IntegerId> results;
  results.reserve(positions * out);
  std::vector<SumTerm> terms(in);
  for (size_t p = 0; p < positions; ++p)
    for (size_t o = 0; o < out; ++o) {
      for (size_t i = 0; i < in; ++i) terms[i] = {inputs[p * in + i], layer.weight[o * in + i]};
      results.push_back(sums.sum(terms, layer.bias_of(o)));
    }
  sums.note();
  if (positions == 1) {
    call.builder.note_linear(inputs, results);
    return results;
  }
  // Windows of one position.
  const int64_t count = static_cast<int64_t>(positions);
  call.builder.note_linear(inputs, results,
                           IntegerGraph::Sliding{.channels = static_cast<int64_t>(in),
                                                 .results = static_cast<int64_t>(out),
                                                 .size = {1, count},
                                                 .kernel = {1, 1},
                                                 .stride = {1, 1},
                                                 .before = {0, 0},
                                                 .after = {0, 0},
                                                 .dilation = {1, 1},
                                                 .result = {1, count}});
  return results;
}

const Register<IntegerLowering> registered{{
    .name = "linear",
    .summary = "sums of products with rounded weights, at every position of a sequence",
    .lower = lower,
}};

}  // namespace
}  // namespace mase::linear_lowering
