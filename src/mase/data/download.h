// SPDX-License-Identifier: Apache-2.0
// Downloads over HTTP(S) that can be cut anywhere: what has come is kept in FILE.part and
// continued, also by the next run. A file appears under its name only when it is complete and, if a
// checksum is known, right; a wrong one is kept aside as FILE.bad. Size and checksum are recorded
// in FILE.json.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace mase {

struct DownloadRequest {
  std::string address;
  std::string path;
  std::string sha256 = {};  // empty: not known, only recorded
  int attempts = 5;         // connections that bring nothing new before giving up
  std::function<void(int64_t done, int64_t total)> progress = {};  // total 0: not known
};

struct DownloadResult {
  int64_t bytes = 0;
  int64_t resumed_at = 0;  // bytes an earlier run had left
  int connections = 0;
  std::string sha256;
};

DownloadResult download(const DownloadRequest& request);

}  // namespace mase
