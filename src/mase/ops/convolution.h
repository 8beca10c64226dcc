// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "mase/ir/op.h"

namespace mase {

// PyTorch's Conv{dims}d and ConvTranspose{dims}d; fills in all but names and summary.
OpRecord convolution_record(OpRecord record, size_t dims, bool transposed);

}  // namespace mase
