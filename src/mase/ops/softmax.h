// SPDX-License-Identifier: Apache-2.0
// What Softmax and LogSoftmax share.
#pragma once

#include "mase/ir/op.h"

namespace mase {

OpRecord softmax_record(OpRecord record, bool logarithm);

}  // namespace mase
