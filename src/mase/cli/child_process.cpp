// SPDX-License-Identifier: Apache-2.0
#include "mase/cli/child_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>

#include "mase/base/error.h"

namespace mase {
namespace {

double now() {
  using namespace std::chrono;
  return duration<double>(steady_clock::now().time_since_epoch()).count();
}

// A child's own part, after fork: only calls that are safe there.
[[noreturn]] void become(char* const* argv, int log, int input, pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) ::_exit(125);  // the parent died before we asked to be told
  ::setpgid(0, 0);  // Ctrl-C on the terminal reaches the sweep alone, which passes it on once
  ::dup2(input, 0);
  ::dup2(log, 1);
  ::dup2(log, 2);
  ::execv("/proc/self/exe", argv);
  ::_exit(127);
}

}  // namespace

ChildProcesses::~ChildProcesses() {
  for (const auto& [pid, child] : children_) {
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
  }
}

bool ChildProcesses::start(size_t key, const std::vector<std::string>& words,
                           const std::string& log, const std::function<void()>& prepare) {
  const int file = ::open(log.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  if (file < 0) throw Error(log, fmt::format("cannot create the file: {}", std::strerror(errno)));
  // The lock belongs to the open file, which the child's output is: it ends with the child.
  if (::flock(file, LOCK_EX | LOCK_NB) != 0) {
    ::close(file);
    return false;
  }
  prepare();
  if (::ftruncate(file, 0) != 0) {
    ::close(file);
    throw Error(log, fmt::format("cannot write the file: {}", std::strerror(errno)));
  }
  const int input = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  std::vector<char*> argv = {const_cast<char*>("ch")};
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  ::setenv("OMP_NUM_THREADS", "1", 1);  // ours too, but we compute nothing
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child == 0) become(argv.data(), file, input, parent);
  const int failure = errno;
  ::close(file);
  ::close(input);
  if (child < 0) throw Error("", fmt::format("cannot start a process: {}", std::strerror(failure)));
  children_[child] = {key, now()};
  return true;
}

bool ChildProcesses::ended(End& end) {
  for (auto at = children_.begin(); at != children_.end(); ++at) {
    int status = 0;
    if (::waitpid(at->first, &status, WNOHANG) != at->first) continue;
    end.key = at->second.key;
    end.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    end.seconds = now() - at->second.started;
    children_.erase(at);
    return true;
  }
  return false;
}

void ChildProcesses::interrupt() {
  for (const auto& [pid, child] : children_) ::kill(pid, SIGINT);
}

}  // namespace mase
