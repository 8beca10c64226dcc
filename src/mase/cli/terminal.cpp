// SPDX-License-Identifier: Apache-2.0
#include "mase/cli/terminal.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "mase/base/text.h"
#include "mase/run/observer.h"
#include "mase/run/settings.h"

namespace mase {
namespace {

volatile std::sig_atomic_t stop_signal = 0;

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
  fmt::print(stderr, "WARNING  {}\n", line);
}

void Logger::error(const std::string& line) const {
  if (!leads_) return;
  std::fflush(stdout);
  fmt::print(stderr, "ERROR    {}\n", line);
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
  // A file-size limit or a closed pipe must arrive as an error of the write, not as a death.
  std::signal(SIGXFSZ, SIG_IGN);
  std::signal(SIGPIPE, SIG_IGN);
}

bool interrupted() { return stop_signal != 0; }

}  // namespace mase
