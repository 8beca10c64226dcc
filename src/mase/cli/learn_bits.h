// SPDX-License-Identifier: Apache-2.0
// ch train --learn-bits.
#pragma once

#include "mase/cli/command.h"

namespace mase {

std::vector<Field> learn_bits_options();
int train_and_learn_bits(const Arguments& arguments);

}  // namespace mase
