// SPDX-License-Identifier: Apache-2.0
// What `ch view` answers: pages and data of the runs below one folder, nothing else. A request
// names runs by identifier, looked up in what the folder holds now; no part of it ever becomes a
// path.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace mase {

struct ViewRequest {
  std::string path;               // "/run"
  std::vector<std::string> runs;  // values of ?run=
  std::string host;               // the Host header
  std::string token;              // from the query or the cookie
};

struct ViewAnswer {
  int status = 200;
  std::string type = "text/html; charset=utf-8";
  std::string body;
};

struct ViewRules {
  std::string folder;
  std::string generator = "ch";
  // With a token every request must carry it. Without one only requests addressed to this machine
  // are answered, so that a foreign page whose name resolves here cannot read anything.
  std::string token;
};

class RunView {
 public:
  explicit RunView(ViewRules rules) : rules_(std::move(rules)) {}
  ViewAnswer answer(const ViewRequest& request);

 private:
  struct Cached {
    std::string stamp, json, title;
  };
  Cached list();
  const Cached* page(const std::vector<std::string>& ids);

  ViewRules rules_;
  std::mutex mutex_;
  std::map<std::string, Cached> cache_;
};

bool is_loopback(const std::string& host);  // "127.0.0.1", "localhost:8080", "[::1]"
std::string random_token();                 // 128 bits from the system, in hex

}  // namespace mase
