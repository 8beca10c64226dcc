// SPDX-License-Identifier: Apache-2.0
#include "mase/hardware/tools/tool.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <utility>

#include "mase/base/error.h"
#include "mase/base/file.h"
#include "mase/base/text.h"

namespace mase {
namespace {

// Of the tool that runs, for the handler of signals.
std::atomic<pid_t> running_group{0};
std::atomic<int> asked_to_stop{0};
static_assert(std::atomic<pid_t>::is_always_lock_free && std::atomic<int>::is_always_lock_free);

void stop_running_tool(int) {
  const int saved = errno, before = asked_to_stop++;
  // Whoever asks twice means it.
  if (const pid_t group = running_group) ::kill(-group, before > 0 ? SIGKILL : SIGTERM);
  errno = saved;
}

// While a tool runs, Ctrl-C and kill end it with all that it started, and us by an error behind it,
// so that half-done files are removed on the way out. Signals that are ignored stay ignored.
class StoppableTool {
 public:
  StoppableTool() {
    asked_to_stop = 0;
    struct sigaction action = {};
    action.sa_handler = stop_running_tool;
    for (auto& [number, before] : signals_) {
      ::sigaction(number, nullptr, &before);
      if (before.sa_handler != SIG_IGN) ::sigaction(number, &action, nullptr);
    }
  }
  ~StoppableTool() {
    running_group = 0;
    for (const auto& [number, before] : signals_) ::sigaction(number, &before, nullptr);
  }
  StoppableTool(const StoppableTool&) = delete;
  StoppableTool& operator=(const StoppableTool&) = delete;

 private:
  std::pair<int, struct sigaction> signals_[3] = {{SIGINT, {}}, {SIGTERM, {}}, {SIGHUP, {}}};
};

// A child's own part, after fork: only calls that are safe there.
[[noreturn]] void become_tool(char* const* words, const char* folder, const int (&ends)[2],
                              pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(125);  // it died before we asked to be told
  ::setpgid(0, 0);
  ::close(ends[0]);
  ::dup2(ends[1], STDOUT_FILENO);
  ::dup2(ends[1], STDERR_FILENO);
  ::close(ends[1]);
  const int nothing = ::open("/dev/null", O_RDONLY);
  if (nothing >= 0) ::dup2(nothing, STDIN_FILENO);
  if (*folder && ::chdir(folder) != 0) ::_exit(127);
  ::execvp(words[0], words);
  ::_exit(127);
}

}  // namespace

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
  static std::mutex one_at_a_time;  // signals are the process's
  const std::lock_guard<std::mutex> alone(one_at_a_time);
  const auto started = std::chrono::steady_clock::now();
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  int ends[2];
  if (pipe(ends) != 0) throw Error(words[0], std::strerror(errno));
  ToolResult result;
  int status = 0;
  {
    const StoppableTool stoppable;
    const pid_t parent = getpid(), child = fork();
    if (child == 0) become_tool(arguments.data(), folder.c_str(), ends, parent);
    const int failure = errno;
    close(ends[1]);
    if (child < 0) {
      close(ends[0]);
      throw Error(words[0], std::strerror(failure));
    }
    ::setpgid(child, child);  // both do: whoever comes first
    running_group = child;
    if (asked_to_stop > 0) ::kill(-child, SIGTERM);
    char block[4096];
    while (true) {
      const ssize_t got = read(ends[0], block, sizeof block);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) break;
      result.output.append(block, static_cast<size_t>(got));
    }
    close(ends[0]);
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
  }
  if (asked_to_stop > 0) throw Error(words[0], "was interrupted", "nothing of it was kept");
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  result.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  return result;
}

WorkFolder::WorkFolder(const std::string& design, const std::string& name)
    : path_((std::filesystem::absolute(design) / "build" / name).string()) {
  make_directories(path_);
}

WorkFolder::~WorkFolder() {
  if (kept_) return;
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
  std::filesystem::remove(std::filesystem::path(path_).parent_path(), ignored);  // if it is empty
}

}  // namespace mase
