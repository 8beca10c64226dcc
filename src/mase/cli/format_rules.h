// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace mase {

int format_rules();

}  // namespace mase
