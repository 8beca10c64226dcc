// SPDX-License-Identifier: Apache-2.0
// A folder that is filled under a name of its own and then renamed. It is locked as long as its
// maker lives, so that the next one can remove what killed processes left; its permissions follow
// the user's umask.
#pragma once

#include <string>

#include "mase/base/file.h"

namespace mase {

class TemporaryFolder {
 public:
  // Makes PREFIX and six letters, after removing those of that prefix that nobody holds.
  explicit TemporaryFolder(const std::string& prefix);
  ~TemporaryFolder();  // removes it, if it is still there
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::string& path() const { return path_; }
  void release() { path_.clear(); }  // it was renamed

 private:
  std::string path_;
  Descriptor lock_;
};

}  // namespace mase
