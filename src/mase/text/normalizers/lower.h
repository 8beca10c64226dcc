// SPDX-License-Identifier: Apache-2.0
// What several normalisers do.
#pragma once

#include "mase/text/aligned_text.h"

namespace mase {

void lower_text(AlignedText& text);

}  // namespace mase
