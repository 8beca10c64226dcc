// SPDX-License-Identifier: Apache-2.0
// The check of whatever builds sums anew: for all inputs they are what they were.
#pragma once

#include <vector>

#include "mase/hardware/graph/linear_form.h"

namespace mase {

// Every head, rebuilt as it was written, is the sum it was: same roots, same factors, same
// constant. `forms` of the nodes before; `renamed` says which node of `after` each became,
// `offsets`, if given, how much less than itself.
void require_same_sums(const std::vector<LinearForm>& forms, const std::vector<char>& is_head,
                       const IntegerGraph& after, const std::vector<IntegerId>& renamed,
                       const std::vector<int64_t>& offsets = {});

}  // namespace mase
