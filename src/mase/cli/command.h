// SPDX-License-Identifier: Apache-2.0
// What a command is: one record per file. The frame (main.cpp) turns the positionals and the option
// schema into flags (batch_size -> --batch-size), help, completion and the generated reference, so
// a command never parses arguments. Only here do we print to the terminal or exit.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "mase/base/registry.h"
#include "mase/base/schema.h"

namespace mase {

struct Positional {
  std::string name;  // "model"
  std::string help;
  bool required = true;
  bool many = false;    // takes all remaining words
  bool option = false;  // may be given as --NAME too
};

struct Arguments {
  Value values;                 // positionals and options by snake_case name, defaults filled in
  std::set<std::string> typed;  // the options and positionals the user typed
  std::vector<std::string> command_line;
  std::vector<std::string> rest;  // of a command that forwards: words and flags it does not know

  const Value& operator[](const std::string& name) const { return values[name]; }
  bool was_typed(const std::string& name) const { return typed.count(name) > 0; }
};

// What people do; `ch --help` lists commands under these headings, in this order.
enum class CommandGroup { start, train, look, quantise, search, hardware, data, other };

struct CommandRecord {
  static constexpr const char* kind = "command";
  std::string name;
  std::vector<std::string> aliases = {};
  CommandGroup group = CommandGroup::other;
  std::string summary;    // one line
  std::string help = {};  // paragraphs under it
  std::vector<Positional> positionals = {};
  // Boolean fields are switches (--name, and --no-name where the default is true); list fields may
  // be repeated. Field::group is the heading in --help.
  Schema options = {};
  std::vector<std::string> tables = {};  // of a configuration that it reads: "passes"
  std::vector<std::string> examples = {};
  std::vector<std::string> word_lists = {};  // list options that take all words behind them
  bool forwards = false;                     // hands unknown words and flags on to another command
  std::function<int(const Arguments& arguments)> run;  // the exit code
};

// For a command of several actions: what was typed beside `action` must be of use for this one.
// `useful` are the names of its options and positionals.
void check_typed(const Arguments& arguments, const std::string& command, const std::string& action,
                 const std::set<std::string>& useful);

const char* program_version();

}  // namespace mase
