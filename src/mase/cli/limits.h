// SPDX-License-Identifier: Apache-2.0
// What the program cannot do, found by trying: every operation of the registries in every style of
// hardware, every number format there and in every flavour of ONNX.
#pragma once

#include <string>

namespace mase {

std::string limits_page();  // Markdown

}  // namespace mase
