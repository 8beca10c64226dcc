// SPDX-License-Identifier: Apache-2.0
// Bits of a number on average. MASE's runner gives the first two together.
#include "mase/search/measure/figure.h"

namespace mase::bits_figures {
namespace {

using namespace search;

const Register<FigureRecord> average{{
    .name = "average_bitwidth",
    .summary = "bits of a weight on average",
    .unit = "bits",
    .companions = {"memory_density"},
    .value = [](const Measured& known) { return known.cost->average_weight_bits(); },
}};

const Register<FigureRecord> density{{
    .name = "memory_density",
    .summary = "compare_to (32 bits) over the bits of a weight on average",
    .higher_is_better = true,
    .companions = {"average_bitwidth"},
    .value =
        [](const Measured& known) {
          const double bits = known.cost->average_weight_bits();
          return bits > 0 ? known.compare_to / bits : 0.0;
        },
}};

const Register<FigureRecord> activations{{
    .name = "average_activation_bitwidth",
    .summary = "bits of an input of a product on average",
    .unit = "bits",
    .value = [](const Measured& known) { return known.cost->average_activation_bits(); },
}};

}  // namespace
}  // namespace mase::bits_figures
