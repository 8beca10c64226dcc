// SPDX-License-Identifier: Apache-2.0
#include "mase/cli/terminal.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "mase/base/address.h"
#include "mase/base/file.h"
#include "mase/base/text.h"
#include "mase/run/observer.h"
#include "mase/run/settings.h"

namespace mase {
namespace {

// A page of a mapped file that is gone. Only what may be called in a handler.
void on_bus_error(int number, siginfo_t* info, void*) {
  const char* path = mapped_file_at(info->si_addr);
  if (!path) {
    std::signal(number, SIG_DFL);  // not a file of ours: dies of it on return
    return;
  }
  for (const char* part :
       {"\nch: ", path, ": became shorter while it was read; try again when nobody writes it\n"})
    if (::write(STDERR_FILENO, part, std::strlen(part)) < 0) break;
  ::_exit(2);
}

// The signal may reach any thread, and others ask.
std::atomic<int> stop_signal{0};
static_assert(std::atomic<int>::is_always_lock_free);

void on_signal(int number) {
  stop_signal = number;
  std::signal(number, SIG_DFL);
}

}  // namespace

int terminal_columns(int fallback) {
  if (const char* text = std::getenv("COLUMNS"))
    if (const auto number = parse_integer(text); number && *number > 0 && *number < 10000)
      return static_cast<int>(*number);
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return fallback;
}

bool output_is_terminal() { return ::isatty(STDOUT_FILENO) != 0; }

Logger::Logger(const Settings& settings, bool leads) : leads_(leads) {
  const std::vector<std::string> levels = {"debug", "info", "warning", "error", "critical"};
  if (settings.has("log_level")) {
    const auto found = std::find(levels.begin(), levels.end(), settings["log_level"].as_string());
    level_ = static_cast<int>(found - levels.begin());
  }
  if (settings.has("debug") && settings["debug"].as_bool()) level_ = 0;
  if (settings.has("no_warnings")) warns_ = !settings["no_warnings"].as_bool();
}

void Logger::debug(const std::string& line) const {
  if (leads_ && level_ <= 0) fmt::print("DEBUG    {}\n", line);
}

void Logger::info(const std::string& line) const {
  if (leads_ && level_ <= 1) fmt::print("INFO     {}\n", line);
}

void Logger::warning(const std::string& line) const {
  if (!leads_ || !warns_ || level_ > 2) return;
  std::fflush(stdout);  // what was said before stands before it, in a file too
  std::fputs(fmt::format("WARNING  {}\n", line).c_str(), stderr);  // a dead stderr stops nothing
}

void Logger::error(const std::string& line) const {
  if (!leads_) return;
  std::fflush(stdout);
  std::fputs(fmt::format("ERROR    {}\n", line).c_str(), stderr);
}

void Logger::text(const std::string& text) const {
  if (leads_ && level_ <= 1) std::fputs(text.c_str(), stdout);
}

Observer Logger::observer() const {
  Observer observer;
  observer.log = [log = *this](LogLevel level, const std::string& line) {
    switch (level) {
      case LogLevel::debug:
        return log.debug(line);
      case LogLevel::info:
        return log.info(line);
      case LogLevel::warning:
        return log.warning(line);
      case LogLevel::error:
        return log.error(line);
    }
  };
  observer.print = [log = *this](const std::string& text) { log.text(text); };
  observer.cancelled = [] { return interrupted(); };
  return observer;
}

LiveLine::LiveLine(bool visible) : visible_(visible), terminal_(output_is_terminal()) {
  if (terminal_) columns_ = terminal_columns();
}

LiveLine::~LiveLine() {
  if (drawn_) std::fputc('\n', stdout);
}

bool LiveLine::due() const {
  return visible_ && terminal_ &&
         std::chrono::steady_clock::now() - last_ >= std::chrono::milliseconds(100);
}

void LiveLine::draw(const std::string& text) {
  if (!visible_ || !terminal_) return;
  // No newline: the next drawing goes over this one.
  fmt::print("\r{}\x1b[K", text);
  std::fflush(stdout);
  last_ = std::chrono::steady_clock::now();
  drawn_ = true;
}

void LiveLine::finish(const std::string& text) {
  if (!visible_) return;
  fmt::print("{}{}{}\n", drawn_ ? "\r" : "", text, drawn_ ? "\x1b[K" : "");
  std::fflush(stdout);
  drawn_ = false;
  last_ = std::chrono::steady_clock::now();
}

void catch_interrupts() {
  std::signal(SIGINT, on_signal);
  std::signal(SIGTERM, on_signal);
}

void prepare_streams() {
  // Opened the wrong way round, so that using one still fails as using a closed one does.
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(stream, F_GETFD) < 0)
      static_cast<void>(::open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY));
  // A file-size limit or a closed pipe must arrive as an error of the write, not as a death.
  std::signal(SIGXFSZ, SIG_IGN);
  std::signal(SIGPIPE, SIG_IGN);
  struct sigaction action {};
  action.sa_sigaction = on_bus_error;
  action.sa_flags = SA_SIGINFO;
  ::sigaction(SIGBUS, &action, nullptr);
}

void complain(const std::string& line) {
  std::fflush(stdout);
  std::fputs(fmt::format("ch: {}\n", without_passwords(line)).c_str(), stderr);
}

int finish_output(int code) {
  if (std::fflush(stdout) == 0 && !std::ferror(stdout)) return code;
  // The write that failed may be long ago: one more says why.
  std::clearerr(stdout);
  errno = 0;
  std::fputc('\n', stdout);
  std::fflush(stdout);
  const std::string reason = errno ? fmt::format(": {}", std::strerror(errno)) : "";
  complain("cannot write the output" + reason);
  return code == 0 ? 1 : code;
}

bool interrupted() { return stop_signal != 0; }

}  // namespace mase
