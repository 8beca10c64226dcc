// SPDX-License-Identifier: Apache-2.0
// What `ch view` answers: pages of the runs below one folder, nothing else. A request
// names runs by identifier, looked up in what the folder holds now; no part of it ever becomes a
// path, and no symbolic link is followed.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "mase/report/pages/list_part.h"
#include "mase/report/pages/run_page.h"
#include "mase/report/server/http_message.h"

namespace mase {

struct ViewRules {
  std::string folder;
  std::string generator = "ch";
  // With a token every request must carry it. Without one only requests addressed to this machine
  // are answered, so that a foreign page whose name resolves here cannot read anything.
  std::string token = {};
  std::string host = {};  // a further name for this machine: the address listened on
};

// For one thread.
class RunView {
 public:
  explicit RunView(ViewRules rules) : rules_(std::move(rules)) {}
  HttpAnswer answer(const HttpRequest& request);

 private:
  struct Cached {
    std::string stamp, html;
  };
  struct Outline {
    std::string stamp;
    ListedRun run;
  };
  HttpAnswer content(const std::string& path, const std::vector<std::string>& ids);
  std::string list();
  const Cached* page(const std::vector<std::string>& ids);
  std::optional<PageContent> search(const std::string& folder) const;

  ViewRules rules_;
  std::map<std::string, Cached> cache_;
  std::map<std::string, Outline> outlines_;  // by folder
};

// A Host header that is exactly one of this machine's names ("localhost", "127.0.0.1", "[::1]", or
// `further`), with or without a port.
bool names_this_machine(const std::string& header, const std::string& further = "");

std::string random_token();  // 128 bits from the system, in hex

}  // namespace mase
