// SPDX-License-Identifier: Apache-2.0
// What the network costs as hardware, by the model of ch estimate: it becomes integers and
// is optimised as ch emit does it.
#include "mase/search/measure/figure.h"

namespace mase::design_figures {
namespace {

using namespace search;

const Register<FigureRecord> luts{{
    .name = "area_luts",
    .summary = "lookup tables of the design, by the model of ch estimate",
    .needs = FigureNeeds::design,
    .unit = "LUTs",
    .value = [](const Measured& known) { return known.design->luts; },
}};

const Register<FigureRecord> latency{{
    .name = "latency",
    .summary = "nanoseconds through the design without registers, by the same model",
    .needs = FigureNeeds::design,
    .unit = "ns",
    .value = [](const Measured& known) { return known.design->delay_ns; },
}};

}  // namespace
}  // namespace mase::design_figures
