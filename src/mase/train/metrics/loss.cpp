// SPDX-License-Identifier: Apache-2.0
// The mean loss of the split, as the engine computed it.
#include "mase/train/metric.h"

namespace mase::loss_metric {
namespace {

const Register<MetricRecord> registered{
    {.name = "loss", .summary = "mean loss over the rows", .compute = [](const MetricInput& input) {
       return Value(input.loss);
     }}};

}  // namespace
}  // namespace mase::loss_metric
