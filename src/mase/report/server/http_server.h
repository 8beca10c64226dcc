// SPDX-License-Identifier: Apache-2.0
// The server of `ch view`: one thread, one poll, GET and HEAD. Whole requests have a time limit,
// not single reads, and when all places are taken the connection that kept us waiting longest makes
// room, so that slow or idle clients cannot keep others out.
#pragma once

#include <functional>
#include <string>

#include "mase/report/server/http_message.h"

namespace mase {

using HttpHandler = std::function<HttpAnswer(const HttpRequest&)>;

class HttpServer {
 public:
  // Listens; port 0 takes any free one. An error names host and port.
  HttpServer(const std::string& host, int port, HttpLimits limits = {});
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  int port() const { return port_; }
  bool loopback() const { return loopback_; }  // of the address it really listens on

  // Answers until `stop_fd` becomes readable.
  void run(const HttpHandler& handler, int stop_fd);

 private:
  HttpLimits limits_;
  int listener_ = -1, port_ = 0;
  bool loopback_ = false;
};

}  // namespace mase
