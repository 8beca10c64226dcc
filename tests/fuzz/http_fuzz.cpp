// SPDX-License-Identifier: Apache-2.0
// coverage floor: 360
// The requests of `ch view`: a head is cut anywhere the same way, and every answer to one that was
// understood is a whole one.
#include <string_view>

#include "fuzz/target.h"
#include "mase/report/server/http_message.h"

size_t fuzz_one(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const mase::HttpLimits limits;
  const mase::ParsedHead head = mase::parse_head(bytes, limits);
  if (head.state != mase::HeadState::complete) return 0;
  if (head.bytes > size || head.request.path.empty()) std::abort();
  // One byte less is not a whole head, and what follows does not matter.
  if (mase::parse_head(bytes.substr(0, head.bytes - 1), limits).state == mase::HeadState::complete)
    std::abort();
  mase::HttpAnswer answer;
  answer.body = std::string(100, 'x');
  const std::string text = mase::answer_text(head.request, answer, head.request.keep_alive);
  if (text.find("\r\n\r\n") == std::string::npos) std::abort();
  return 1 + head.request.query.size();
}
