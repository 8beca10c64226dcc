// SPDX-License-Identifier: Apache-2.0
// How many parameters a network has: the second is the one to minimise where pruning is searched.
#include "mase/search/measure/figure.h"

namespace mase::parameter_figures {
namespace {

using namespace search;

const Register<FigureRecord> all{{
    .name = "parameters",
    .summary = "parameters, pruned or not",
    .value = [](const Measured& known) { return static_cast<double>(known.parameters.all); },
}};

const Register<FigureRecord> unpruned{{
    .name = "unpruned_parameters",
    .summary = "parameters without those that pruning keeps at zero",
    .value =
        [](const Measured& known) {
          return static_cast<double>(known.parameters.all - known.parameters.pruned);
        },
}};

}  // namespace
}  // namespace mase::parameter_figures
