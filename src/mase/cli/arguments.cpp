// SPDX-License-Identifier: Apache-2.0
// A command's record becomes a command line of CLI11; mistakes are told in our words.
#include "mase/cli/arguments.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <map>
#include <memory>

#include "mase/base/text.h"

namespace mase {
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
    const std::string names =
        positional.option ? positional.name + "," + flag_name(positional.name) : positional.name;
    CLI::Option* option = app.add_option(names, typed.texts[positional.name], positional.help);
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
  app.footer(command.help.empty() ? "" : "\n" + command.help + "\n");
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
  for (const Field& field : typed.command->options.fields)
    if (field.required && !given.find(field.name))
      throw Error(flag_name(field.name), "is missing", field.help);
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

// Whoever asks for help first sees what can be typed.
std::string heading(const CommandRecord& command) {
  std::string text = capitalised(command.summary);
  if (!command.examples.empty()) text += "\n\nExamples:";
  for (const std::string& example : command.examples) text += "\n  " + example;
  return text + "\n";
}

std::string usage(const CommandRecord& command) {
  std::string text = "usage: ch " + command.name;
  for (const Positional& positional : command.positionals) {
    std::string word = positional.name;
    for (char& c : word) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    if (positional.many) word += "...";
    text += positional.required ? " " + word : " [" + word + "]";
  }
  for (const Field& field : command.options.fields)
    if (field.required) text += fmt::format(" {} ...", flag_name(field.name));
  return text + fmt::format("; see ch {} --help", command.name);
}

std::vector<std::string> known_flags(const CommandRecord& command) {
  std::vector<std::string> flags = {"--help"};
  for (const Positional& positional : command.positionals)
    if (positional.option) flags.push_back(flag_name(positional.name));
  for (const Field& field : command.options.fields) {
    flags.push_back(flag_name(field.name));
    for (const std::string& alias : field.aliases) flags.push_back(flag_name(alias));
    if (can_be_turned_off(field)) flags.push_back("--no-" + replace_all(field.name, "_", "-"));
  }
  return flags;
}

// Before CLI11 sees them: it would take the value of a misspelt option for an argument.
void check_flags(const CommandRecord& command, const std::vector<std::string>& words) {
  if (command.forwards) return;  // it checks them against the command they are for
  const std::vector<std::string> flags = known_flags(command);
  for (const std::string& word : words) {
    if (word == "--") return;
    const std::string flag = word.substr(0, word.find('='));
    if (!starts_with(word, "--") || std::count(flags.begin(), flags.end(), flag)) continue;
    throw Error(command.name, fmt::format("unknown option '{}'", printable(flag)),
                nearest_names(flag, flags).empty() ? fmt::format("see ch {} --help", command.name)
                                                   : suggestion(flag, flags));
  }
}

// --json with nothing behind it is the terminal, as in commands that know no file for it.
std::vector<std::string> with_terminal(const CommandRecord& command,
                                       std::vector<std::string> words) {
  const Field* const json = command.options.find("json");
  if (!json || json->type != FieldType::text) return words;
  for (size_t i = 0; i < words.size() && words[i] != "--"; ++i)
    if (words[i] == "--json" && (i + 1 == words.size() || starts_with(words[i + 1], "--")))
      words[i] = "--json=-";
  return words;
}

// A usage error in our words.
[[noreturn]] void explain(const CLI::ParseError& error, const CommandRecord& command,
                          const std::vector<std::string>& words) {
  if (!dynamic_cast<const CLI::RequiredError*>(&error))
    for (const std::string& word : words)
      if (word.size() > 1 && word[0] == '-' && std::isalpha(static_cast<unsigned char>(word[1])))
        throw Error(command.name, fmt::format("unknown option '{}'", printable(word)),
                    suggestion("-" + word, known_flags(command)));
  for (const Positional& positional : command.positionals) {
    const auto names_it = [&](const char* end) {
      return starts_with(error.what(), positional.name + end) ||
             starts_with(error.what(), flag_name(positional.name) + end);
    };
    if (dynamic_cast<const CLI::RequiredError*>(&error) && names_it(" "))
      throw Error(command.name, fmt::format("'{}' is missing", positional.name), usage(command));
    if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) && names_it(":"))
      throw Error(command.name, "too many arguments", usage(command));
  }
  if (dynamic_cast<const CLI::ExtrasError*>(&error))
    throw Error(command.name, "too many arguments", usage(command));
  throw Error(command.name, printable(error.what()), usage(command));
}

}  // namespace

std::string capitalised(std::string text) {
  if (!text.empty()) text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  return text;
}

bool parse_arguments(const CommandRecord& command, const std::vector<std::string>& given,
                     Arguments& arguments, std::string& help) {
  const std::vector<std::string> words = with_terminal(command, given);
  check_flags(command, words);
  CLI::App app(heading(command), "ch " + command.name);
  app.get_formatter()->column_width(34);
  Typed typed;
  add_options(app, command, typed);
  try {
    app.parse(
        std::vector<std::string>(words.rbegin(), words.rend()));  // CLI11 takes them from the end
  } catch (const CLI::CallForHelp&) {
    help = app.help();
    return false;
  } catch (const CLI::ParseError& error) {
    explain(error, command, words);
  }
  arguments = collect(app, typed);
  return true;
}

}  // namespace mase
