// SPDX-License-Identifier: Apache-2.0
// Text from anywhere made valid UTF-8, for outputs whose readers insist on it (protobuf, HTML).
#pragma once

#include <string>
#include <string_view>

namespace mase {

// Every byte that is not part of a valid, shortest-form sequence becomes U+FFFD.
std::string valid_utf8(std::string_view text);

// Bytes of the valid sequence at the start of a non-empty text; 0 if there is none.
size_t utf8_length(std::string_view text);

}  // namespace mase
