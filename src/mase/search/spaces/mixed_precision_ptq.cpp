// SPDX-License-Identifier: Apache-2.0
// graph/quantize/mixed_precision_ptq: number formats per layer.
#include "mase/search/spaces/quantize_space.h"

namespace mase::mixed_precision_ptq_space {
namespace {

using namespace search;

const Register<SpaceRecord> registered{{
    .name = "graph/quantize/mixed_precision_ptq",
    .summary = "number formats per layer",
    .keys = QuantizeSpace::keys,
    .make = [](const SpaceSetup& setup,
               Problems& problems) { return std::make_unique<QuantizeSpace>(setup, problems); },
}};

}  // namespace
}  // namespace mase::mixed_precision_ptq_space
