// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "mase/io/onnx/read/import.h"

namespace mase::onnx {

// The network, or the first node that cannot be said without knowing how large the batch is.
struct Converted {
  std::optional<Imported> imported = {};
  std::optional<Error> needs_batch = {};
};

// A graph of ours from one without functions of its own. `whole`: the model is one sample
// (Conversion::whole). `partial`: nodes that cannot be converted are kept as opaque ones. Throws
// what no batch would mend.
Converted convert_graph(const Model& model, ExternalFiles& files, const std::string& place,
                        MemoryBudget& budget, bool whole, bool partial);

}  // namespace mase::onnx
