// SPDX-License-Identifier: Apache-2.0
#include "mase/cli/portable.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "mase/base/error.h"
#include "mase/engine/kernels/instruction_set.h"

namespace mase {

void run_portably(const std::vector<std::string>& command_line) {
  use_portable_instructions();
  const EnvironmentVariable wanted = portable_environment();
  const char* given = std::getenv(wanted.name);
  if (given && std::string(given) == wanted.value) return;
  ::setenv(wanted.name, wanted.value, 1);
  std::vector<char*> words;
  for (const std::string& word : command_line) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  ::execv("/proc/self/exe", words.data());
  throw Error("--deterministic",
              fmt::format("the program cannot start itself again: {}", std::strerror(errno)),
              fmt::format("start it with {}={}", wanted.name, wanted.value));
}

}  // namespace mase
