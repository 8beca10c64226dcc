// SPDX-License-Identifier: Apache-2.0
#include "mase/hardware/tool.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>

#include "mase/base/error.h"
#include "mase/base/text.h"

namespace mase {

bool tool_exists(const std::string& program) {
  if (program.find('/') != std::string::npos) return access(program.c_str(), X_OK) == 0;
  const char* path = std::getenv("PATH");
  for (const std::string& folder : split(path ? path : "", ':'))
    if (!folder.empty() && access((folder + "/" + program).c_str(), X_OK) == 0) return true;
  return false;
}

void require_tool(const std::string& program) {
  if (!tool_exists(program))
    throw Error(program, "is not installed", fmt::format("apt-get install {}", program));
}

ToolResult run_tool(const std::vector<std::string>& words, const std::string& folder) {
  require_tool(words.at(0));
  const auto started = std::chrono::steady_clock::now();
  int ends[2];
  if (pipe(ends) != 0) throw Error(words[0], std::strerror(errno));
  const pid_t child = fork();
  if (child < 0) throw Error(words[0], std::strerror(errno));
  if (child == 0) {
    close(ends[0]);
    dup2(ends[1], STDOUT_FILENO);
    dup2(ends[1], STDERR_FILENO);
    close(ends[1]);
    const int nothing = open("/dev/null", O_RDONLY);
    if (nothing >= 0) dup2(nothing, STDIN_FILENO);
    if (!folder.empty() && chdir(folder.c_str()) != 0) _exit(127);
    std::vector<char*> arguments;
    for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    execvp(arguments[0], arguments.data());
    _exit(127);
  }
  close(ends[1]);
  ToolResult result;
  char block[4096];
  while (true) {
    const ssize_t got = read(ends[0], block, sizeof block);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    result.output.append(block, static_cast<size_t>(got));
  }
  close(ends[0]);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  result.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  return result;
}

}  // namespace mase
