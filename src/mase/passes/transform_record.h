// SPDX-License-Identifier: Apache-2.0
// What a page about a transform shows, gathered once: nodes with their formats and shapes,
// histograms of operands against the limits of their formats, errors per layer, costs before and
// after, accuracies. Plain values: the report knows nothing of graphs.
#pragma once

#include "mase/passes/pass.h"

namespace mase {

Value transform_record(const Graph& original, const Graph& transformed, const PassContext& context);

}  // namespace mase
