// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "mase/io/onnx/import.h"

namespace mase::onnx {

// A graph of ours from one without functions of its own. `whole`: the model is one sample
// (Conversion::whole). `partial`: nodes that cannot be converted are kept as opaque ones.
Imported convert_graph(const Model& model, ExternalFiles& files, const std::string& place,
                       MemoryBudget& budget, bool whole, bool partial);

}  // namespace mase::onnx
