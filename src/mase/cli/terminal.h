// SPDX-License-Identifier: Apache-2.0
// The terminal: its width, lines at MASE's log levels, and one line that is redrawn in place.
#pragma once

#include <chrono>
#include <functional>
#include <string>

namespace mase {

struct Observer;
struct Settings;

// COLUMNS, or the terminal's own width, or `fallback` where there is none.
int terminal_columns(int fallback = 80);
bool output_is_terminal();

// "INFO     Training ..." on stdout, warnings and errors on stderr; quiet on processes that do not
// lead and below the level the user chose.
class Logger {
 public:
  Logger() = default;
  Logger(const Settings& settings, bool leads);
  void debug(const std::string& line) const;
  void info(const std::string& line) const;
  void warning(const std::string& line) const;
  void error(const std::string& line) const;
  void text(const std::string& text) const;  // as it is, at level info
  bool shows_info() const { return leads_ && level_ <= 1; }
  // What a command hands to the library: log lines and tables go here, Ctrl-C cancels.
  Observer observer() const;

 private:
  int level_ = 1;  // 0 debug, 1 info, 2 warning, 3 error, 4 critical
  bool leads_ = true, warns_ = true;
};

// A progress line on stdout: redrawn at most ten times a second on a terminal; elsewhere only
// finished lines are printed.
class LiveLine {
 public:
  explicit LiveLine(bool visible = true);
  ~LiveLine();
  LiveLine(const LiveLine&) = delete;
  LiveLine& operator=(const LiveLine&) = delete;

  // True when it is time to draw again; a test of the clock and nothing else.
  bool due() const;
  void draw(const std::string& text);
  void finish(const std::string& text);     // the line as it stays
  int columns() const { return columns_; }  // 0: not a terminal

 private:
  bool visible_, terminal_, drawn_ = false;
  int columns_ = 0;
  std::chrono::steady_clock::time_point last_{};
};

// Before anything is read or written: a stream that was closed does not become the next file that
// is opened, a write to a closed pipe is an error and not a death, and a file that shrinks while it
// is mapped ends the program with a line that names it.
void prepare_streams();
// One line on stderr, after what was printed and on a line of its own. Failing is no error: there
// is nobody to tell.
void complain(const std::string& line);
// The exit code: 1 with a line on stderr where the output could not be written.
int finish_output(int code);

// Ctrl-C and SIGTERM ask for a stop instead of killing the process; a second Ctrl-C kills it.
void catch_interrupts();
bool interrupted();

}  // namespace mase
