// SPDX-License-Identifier: Apache-2.0
// Children of the same program, several at a time: started without a shell, output into a file,
// ended gracefully when we are.
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace mase {

class ChildProcesses {
 public:
  ~ChildProcesses();  // kills what still runs

  // Runs this very program with the words. Output goes to `log`, whose lock the child holds as long
  // as it lives: false, and nothing is done, while a child of an earlier program still does.
  // `prepare` is called under the lock, before the child starts.
  bool start(size_t key, const std::vector<std::string>& words, const std::string& log,
             const std::function<void()>& prepare);

  struct End {
    size_t key = 0;
    int exit_code = 0;  // 128 + signal if killed
    double seconds = 0;
  };
  // A child that has ended, if one has.
  bool ended(End& end);
  void interrupt();  // asks all to stop
  size_t running() const { return children_.size(); }

 private:
  struct Child {
    size_t key;
    double started;
  };
  std::map<pid_t, Child> children_;
};

}  // namespace mase
