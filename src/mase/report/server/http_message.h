// SPDX-License-Identifier: Apache-2.0
// HTTP/1.1 requests without bodies and their answers, as text: what `ch view` speaks. Everything is
// limited before it is looked at, and what is not understood is refused, never guessed.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mase {

struct HttpLimits {
  size_t target_bytes = 16 << 10;  // room for two hundred runs in one address
  size_t head_bytes = 32 << 10;
  size_t header_lines = 64;
  size_t parameters = 256;
  size_t connections = 64;
  size_t requests_of_connection = 1000;
  double head_seconds = 5;     // from the first moment a request may come to its last header
  double idle_seconds = 30;    // between two requests of a connection
  double answer_seconds = 60;  // for one answer to be taken
  double linger_seconds = 1;   // for a refusal to be read before the connection goes
};

struct HttpRequest {
  std::string method;                                      // GET or HEAD
  std::string path;                                        // decoded, without the query
  std::vector<std::pair<std::string, std::string>> query;  // decoded
  std::string host, cookie, range;
  bool keep_alive = true;
};

struct HttpAnswer {
  int status = 200;
  std::string type = "text/plain; charset=utf-8";
  std::string body = {};
  std::vector<std::pair<std::string, std::string>> headers = {};
};

enum class HeadState { incomplete, complete, refused };

struct ParsedHead {
  HeadState state = HeadState::incomplete;
  size_t bytes = 0;  // of a complete head, the empty line included
  HttpRequest request = {};
  HttpAnswer refusal = {};
};

// The request at the start of `bytes`, which may hold less or more than one.
ParsedHead parse_head(std::string_view bytes, const HttpLimits& limits);

// Status line, headers and body as they are sent. One satisfiable byte range of a 200 becomes a
// 206, one that is not a 416; several ranges, or any other unit, are answered with the whole, which
// RFC 9110 allows and which keeps a request from costing more than its page.
std::string answer_text(const HttpRequest& request, const HttpAnswer& answer, bool keep_alive);

}  // namespace mase
