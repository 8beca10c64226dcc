// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "mase/io/onnx/read/operator.h"

namespace mase::onnx {

// Roundings that stand alone in the graph move into the layers beside them:
//
//   relu -> round -> linear   =>   relu (data_out rounded) -> linear
//   x -> round -> linear      =>   x -> linear (data_in rounded)
//
// where that changes no value; others stay, as Identity layers that round. Then every layer gets
// its table.
void place_formats(Conversion& conversion);

}  // namespace mase::onnx
