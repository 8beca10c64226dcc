// SPDX-License-Identifier: Apache-2.0
// The one error type for everything that is the user's fault (files, configs, names, sizes), and
// the check for everything that is ours. Errors carry place, cause and remedy; they are caught
// once, in main, and end the program with exit code 2. A failed check throws InternalError: it is a
// bug, but the library's caller, a notebook for instance, survives it.
#pragma once

#include <fmt/format.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace mase {

// Where a value was written. An empty file means "not from a file" (a flag, a default).
struct Position {
  std::shared_ptr<const std::string> file;
  int line = 0;
  int column = 0;

  std::string str() const;  // "configs/a.toml:14", "configs/a.toml" or ""
  explicit operator bool() const { return file != nullptr; }
};

// What kind of mistake it is, for whoever tells some before others.
enum class Mistake { other, unknown_key, unknown_name, missing_key };

class Error : public std::runtime_error {
 public:
  Error(std::string place, std::string cause, std::string remedy = "");
  Error(const Position& position, const std::string& path, std::string cause,
        std::string remedy = "");

  // Several problems of one file, one line each.
  static Error all(const std::vector<Error>& problems);

  const std::string& place() const { return place_; }
  const std::string& cause() const { return cause_; }
  const std::string& remedy() const { return remedy_; }
  Mistake mistake() const { return mistake_; }
  Error as(Mistake mistake) const;
  // The problems it was made of; one: itself.
  std::vector<Error> parts() const;
  int count() const { return parts_ ? static_cast<int>(parts_->size()) : 1; }

 private:
  std::string place_, cause_, remedy_;
  Mistake mistake_ = Mistake::other;
  std::shared_ptr<const std::vector<Error>> parts_ = {};
};

// Collects problems so that a file's mistakes are reported all at once.
class Problems {
 public:
  void add(Error error) { errors_.push_back(std::move(error)); }
  bool empty() const { return errors_.empty(); }
  const std::vector<Error>& errors() const { return errors_; }
  void throw_if_any() const;

 private:
  std::vector<Error> errors_;
};

// A check of the library that failed: our mistake, or a call against the library's contract. Not an
// Error, so that nobody takes it for one of the user's.
class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

[[noreturn]] void check_failed(const char* file, int line, const char* condition,
                               const std::string& message);

}  // namespace mase

// For our own mistakes only. Never for anything a file or a flag can cause.
#define MASE_CHECK(condition, ...)                                                      \
  do {                                                                                  \
    if (!(condition))                                                                   \
      ::mase::check_failed(__FILE__, __LINE__, #condition, ::fmt::format(__VA_ARGS__)); \
  } while (false)
