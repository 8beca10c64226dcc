// SPDX-License-Identifier: Apache-2.0
// The program: turns the registered commands into a command line (CLI11), runs the chosen one, and
// catches errors once. Exit codes: 0 done, 1 failed, 2 the user's mistake, 130 interrupted.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <new>

#include "mase/cli/command.h"
#include "mase/cli/info.h"
#include "mase/cli/plugin.h"
#include "mase/cli/terminal.h"

#ifndef MASE_VERSION
#define MASE_VERSION "unknown"
#endif

namespace mase {

const char* program_version() { return MASE_VERSION; }

namespace {

constexpr int any_number = CLI::detail::expected_max_vector_size;  // printed as "..."

std::string flag_name(const std::string& name) { return "--" + replace_all(name, "_", "-"); }

std::string flag_names(const Field& field) {
  std::string names = flag_name(field.name);
  for (const std::string& alias : field.aliases) names += "," + flag_name(alias);
  return names;
}

// A switch that is on, or that a record decides, also has --no-NAME.
bool can_be_turned_off(const Field& field) {
  return field.type == FieldType::boolean &&
         (field.default_value.is_null() || field.default_value.as_bool());
}

// The words the user typed for one command.
struct Typed {
  const CommandRecord* command = nullptr;
  std::map<std::string, std::vector<std::string>> texts;
  std::map<std::string, bool> switches;
};

std::string default_text(const Field& field) {
  if (field.default_value.is_null()) return "";
  if (field.default_value.is_string()) return field.default_value.as_string();
  return python_repr(field.default_value);
}

void add_options(CLI::App& app, const CommandRecord& command, Typed& typed) {
  typed.command = &command;
  for (const Positional& positional : command.positionals) {
    CLI::Option* option =
        app.add_option(positional.name, typed.texts[positional.name], positional.help);
    option->required(positional.required);
    if (positional.many)
      option->expected(positional.required ? 1 : 0, any_number);
    else
      option->expected(1)->allow_extra_args(false);  // the next word is the next positional's
  }
  for (const Field& field : command.options.fields) {
    CLI::Option* option = nullptr;
    if (field.type == FieldType::boolean) {
      std::string names = flag_names(field);
      if (can_be_turned_off(field)) names += ",!--no-" + replace_all(field.name, "_", "-");
      option = app.add_flag(names, typed.switches[field.name], field.help);
    } else {
      std::string help = field.help;
      const std::string fallback = default_text(field);
      if (!field.choices.empty()) help += fmt::format(" [{}]", join(field.choices, "|"));
      if (!fallback.empty()) help += fmt::format(" (default: {})", fallback);
      option = app.add_option(flag_names(field), typed.texts[field.name], help);
      const auto& lists = command.word_lists;
      if (std::find(lists.begin(), lists.end(), field.name) != lists.end())
        option->expected(1, any_number);
      else
        option->expected(1)->allow_extra_args(false);
      option->multi_option_policy(field.type == FieldType::list ? CLI::MultiOptionPolicy::TakeAll
                                                                : CLI::MultiOptionPolicy::TakeLast);
      option->type_name(field.type == FieldType::integer  ? "N"
                        : field.type == FieldType::number ? "X"
                                                          : "TEXT");
    }
    if (!field.group.empty()) option->group(field.group);
  }
  std::string footer = command.help.empty() ? "" : "\n" + command.help + "\n";
  if (!command.examples.empty()) footer += "\nExamples:\n";
  for (const std::string& example : command.examples) footer += "  " + example + "\n";
  app.footer(footer);
  app.allow_extras(command.forwards);
}

Value typed_value(const Field& field, const std::vector<std::string>& texts) {
  if (field.type == FieldType::list) return Value::of(texts);
  const std::string& text = texts.back();
  if (field.type == FieldType::integer) {
    if (auto number = parse_integer(text)) return *number;
    throw Error(flag_name(field.name), fmt::format("'{}' is not an integer", printable(text)));
  }
  if (field.type == FieldType::number) {
    if (auto number = parse_number(text)) return *number;
    throw Error(flag_name(field.name), fmt::format("'{}' is not a number", printable(text)));
  }
  return text;
}

Arguments collect(const CLI::App& app, const Typed& typed) {
  Arguments arguments;
  Dict given;
  for (const Field& field : typed.command->options.fields) {
    if (app.count(flag_name(field.name)) == 0) continue;
    arguments.typed.insert(field.name);
    given.set(field.name, field.type == FieldType::boolean
                              ? Value(typed.switches.at(field.name))
                              : typed_value(field, typed.texts.at(field.name)));
  }
  Problems problems;
  Value values = validate(Value(given), typed.command->options, "", problems);
  for (const Error& error : problems.errors())
    throw Error(flag_name(error.place()), error.cause(), error.remedy());
  for (const Positional& positional : typed.command->positionals) {
    const std::vector<std::string>& words = typed.texts.at(positional.name);
    if (!words.empty()) arguments.typed.insert(positional.name);
    values.dict().set(positional.name, positional.many ? Value::of(words)
                                       : words.empty() ? Value()
                                                       : Value(words.front()));
  }
  arguments.values = std::move(values);
  arguments.rest = app.remaining();
  return arguments;
}

const CommandRecord* find_command(const std::string& word) {
  return Registry<CommandRecord>::instance().find(word);
}

std::string usage(const CommandRecord& command) {
  std::string text = "usage: ch " + command.name;
  for (const Positional& positional : command.positionals) {
    std::string word = positional.name;
    for (char& c : word) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    if (positional.many) word += "...";
    text += positional.required ? " " + word : " [" + word + "]";
  }
  return text + fmt::format("; see ch {} --help", command.name);
}

std::vector<std::string> known_flags(const CommandRecord& command) {
  std::vector<std::string> flags = {"--help"};
  for (const Field& field : command.options.fields) {
    flags.push_back(flag_name(field.name));
    for (const std::string& alias : field.aliases) flags.push_back(flag_name(alias));
    if (can_be_turned_off(field)) flags.push_back("--no-" + replace_all(field.name, "_", "-"));
  }
  return flags;
}

// Before CLI11 sees them: it would take the value of a misspelt option for an argument.
void check_flags(const CommandRecord& command, int argc, char** argv) {
  if (command.forwards) return;  // it checks them against the command they are for
  const std::vector<std::string> flags = known_flags(command);
  for (int i = 2; i < argc && std::string(argv[i]) != "--"; ++i) {
    const std::string word = argv[i];
    const std::string flag = word.substr(0, word.find('='));
    if (!starts_with(word, "--") || std::count(flags.begin(), flags.end(), flag)) continue;
    throw Error(command.name, fmt::format("unknown option '{}'", printable(flag)),
                nearest_names(flag, flags).empty() ? fmt::format("see ch {} --help", command.name)
                                                   : suggestion(flag, flags));
  }
}

// A usage error in our words.
[[noreturn]] void explain(const CLI::ParseError& error, const CommandRecord& command) {
  for (const Positional& positional : command.positionals) {
    if (dynamic_cast<const CLI::RequiredError*>(&error) &&
        starts_with(error.what(), positional.name + " "))
      throw Error(command.name, fmt::format("'{}' is missing", positional.name), usage(command));
    if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) &&
        starts_with(error.what(), positional.name + ":"))
      throw Error(command.name, "too many arguments", usage(command));
  }
  if (dynamic_cast<const CLI::ExtrasError*>(&error))
    throw Error(command.name, "too many arguments", usage(command));
  throw Error(command.name, printable(error.what()), usage(command));
}

std::string capitalised(std::string text) {
  if (!text.empty()) text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  return text;
}

std::string command_list() {
  static const std::pair<CommandGroup, const char*> groups[] = {
      {CommandGroup::start, "Start"},   {CommandGroup::train, "Train and test"},
      {CommandGroup::look, "Look"},     {CommandGroup::quantise, "Quantise"},
      {CommandGroup::search, "Search"}, {CommandGroup::hardware, "Hardware"},
      {CommandGroup::data, "Data"},     {CommandGroup::other, "Other"}};
  std::string text;
  for (const auto& [group, heading] : groups) {
    std::string lines;
    for (const CommandRecord* command : Registry<CommandRecord>::instance().all())
      if (command->group == group)
        lines += fmt::format("  {:<12}{}\n", command->name, capitalised(command->summary));
    if (!lines.empty()) text += fmt::format("{}{}:\n{}", text.empty() ? "" : "\n", heading, lines);
  }
  return text;
}

std::string main_help() {
  return fmt::format(
      "ch {}: neural networks from training to number formats to hardware\n\n"
      "Usage: ch COMMAND [ARGUMENTS] [OPTIONS]\n\n{}\n"
      "Options:\n"
      "  -h, --help            this text; ch COMMAND --help for a command's own\n"
      "  -V, --version         the version\n"
      "  --info [WHAT]         tables of what there is: all, {}\n\n"
      "Examples:\n"
      "  ch summary jsc-toy                  a network, layer by layer\n"
      "  ch train jsc-tiny jsc               train it; its folder is named at the end\n"
      "  ch test --load mase_output/RUN/software/training_ckpts/best.mz\n"
      "  ch --info model                     what networks there are\n",
      program_version(), command_list(), join(info_kinds(), ", "));
}

int run_program(int argc, char** argv) {
  const std::string first = argc > 1 ? argv[1] : "";
  if (first.empty() || first == "-h" || first == "--help" || first == "help") {
    std::fputs(main_help().c_str(), stdout);
    return 0;
  }
  if (first == "-V" || first == "--version") {
    fmt::print("ch {}\n", program_version());
    return 0;
  }
  if (first == "--info" || starts_with(first, "--info=")) {
    const std::string what = first != "--info" ? first.substr(7) : argc > 2 ? argv[2] : "all";
    std::fputs(info_text(what).c_str(), stdout);
    return 0;
  }
  const CommandRecord* command = find_command(first);
  if (!command) {
    if (starts_with(first, "-"))
      throw Error("", fmt::format("unknown option '{}'", printable(first)),
                  suggestion(first, {"--help", "--version", "--info"}));
    const std::vector<std::string> names = Registry<CommandRecord>::instance().names();
    throw Error("", fmt::format("unknown command '{}'", printable(first)),
                nearest_names(first, names).empty() ? "see ch --help" : suggestion(first, names));
  }
  check_flags(*command, argc, argv);
  CLI::App app(capitalised(command->summary), "ch " + command->name);
  app.get_formatter()->column_width(34);
  Typed typed;
  add_options(app, *command, typed);
  try {
    app.parse(argc - 1, argv + 1);
  } catch (const CLI::CallForHelp&) {
    std::fputs(app.help().c_str(), stdout);
    return 0;
  } catch (const CLI::ParseError& error) {
    explain(error, *command);
  }
  Arguments arguments = collect(app, typed);
  for (int i = 0; i < argc; ++i) arguments.command_line.emplace_back(argv[i]);
  load_plugins(arguments["plugin"]);
  return command->run(arguments);
}

}  // namespace
}  // namespace mase

int main(int argc, char** argv) {
  mase::prepare_streams();
  int code = 1;
  try {
    code = mase::run_program(argc, argv);
  } catch (const mase::Error& error) {
    mase::complain(error.what());
    code = 2;
  } catch (
      const std::filesystem::filesystem_error& error) {  // a name that cannot be, no permission
    mase::complain(fmt::format("{}: {}", error.path1().string(), error.code().message()));
    code = 2;
  } catch (const std::bad_alloc&) {
    mase::complain("out of memory");
  } catch (const mase::InternalError& error) {
    mase::complain(
        fmt::format("{}; this is a bug in ch, please report it with the command", error.what()));
    code = 70;  // EX_SOFTWARE: neither the user's mistake (2) nor the machine's (1)
  } catch (const std::exception& error) {
    if (!std::ferror(stdout)) mase::complain(error.what());  // else it is said below
  }
  return mase::finish_output(code);
}
