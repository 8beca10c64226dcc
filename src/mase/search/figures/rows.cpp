// SPDX-License-Identifier: Apache-2.0
// How a network does on the rows of the search.
#include "mase/search/measure/figure.h"

namespace mase::rows_figures {
namespace {

using namespace search;

const Register<FigureRecord> accuracy{{
    .name = "accuracy",
    .summary = "share of rows whose largest output is their class",
    .needs = FigureNeeds::rows,
    .higher_is_better = true,
    .percent = true,
    .for_numbers = false,
    .value = [](const Measured& known) { return known.score->accuracy(); },
}};

const Register<FigureRecord> loss{{
    .name = "loss",
    .summary = "mean loss of a row",
    .needs = FigureNeeds::rows,
    .value = [](const Measured& known) { return known.score->loss(); },
}};

}  // namespace
}  // namespace mase::rows_figures
