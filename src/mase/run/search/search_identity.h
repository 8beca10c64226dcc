// SPDX-License-Identifier: Apache-2.0
// What a network or rows are, as a digest of their contents: two searches that share a study must
// mean the same by a trial, and two trials may be one network.
#pragma once

#include <string>

#include "mase/data/dataset.h"
#include "mase/ir/graph.h"

namespace mase {

// Structure and number formats, and with `weights` every parameter and buffer; no names, no
// metadata.
std::string network_digest(const Graph& graph, bool weights);
// The first rows of a split as the network meets them: scaled, with their labels or targets.
std::string rows_digest(const Split& split, int64_t rows);
// What the network computes: formats of weights count by the numbers that they round to. Networks
// of equal digests give equal outputs, whatever their configurations say.
std::string effect_digest(const Graph& graph);

}  // namespace mase
