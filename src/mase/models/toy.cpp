// SPDX-License-Identifier: Apache-2.0
// toy: two hidden layers of eight for any data; by default toy_tiny's 1 x 2 x 2 samples.
#include "mase/models/sequential.h"

namespace mase::toy_model {
namespace {

Graph build(const ModelInputs& inputs) {
  Sequential network("toy", inputs, {1, 2, 2}, 2);
  network.linear(8).relu(false).linear(8).relu(false);
  return network.linear(network.outputs()).finish();
}

const Register<ModelRecord> registered{
    {.name = "toy", .summary = "two hidden layers of 8, any data", .build = build}};

}  // namespace
}  // namespace mase::toy_model
