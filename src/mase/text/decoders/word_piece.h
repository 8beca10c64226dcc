// SPDX-License-Identifier: Apache-2.0
// What is done to spaces before punctuation and contractions.
#pragma once

#include <string>

namespace mase {

std::string without_word_spaces(std::string text);

}  // namespace mase
