// SPDX-License-Identifier: Apache-2.0
// ch reference: everything the registries hold, as Markdown. docs/reference/ is its output, and a
// check holds it current, so it must not depend on the machine.
#include <cctype>
#include <cstdio>

#include "mase/base/file.h"
#include "mase/base/table.h"
#include "mase/base/text.h"
#include "mase/cli/command.h"
#include "mase/cli/record_kinds.h"

namespace mase::reference_command {
namespace {

std::string escaped(const std::string& text) {
  return replace_all(replace_all(text, "|", "\\|"), "\n", " ");
}

std::string fields_table(const Schema& schema, bool flags) {
  if (schema.fields.empty()) return "";
  Table table({flags ? "Option" : "Key", "Type", "Default", "Meaning"});
  for (const Field& field : schema.fields) {
    std::string name = flags ? "--" + replace_all(field.name, "_", "-") : field.name;
    std::string type = type_name(field.type);
    std::string help = field.help;
    if (!field.choices.empty()) help += fmt::format(" [{}]", join(field.choices, ", "));
    const std::string usual = reference_default(field);
    const bool quoted = !usual.empty() && !field.required && usual != "by machine";
    table.add({"`" + name + "`", type, quoted ? "`" + escaped(usual) + "`" : usual, escaped(help)});
  }
  return "\n" + table.str(TableStyle::pipe) + "\n";
}

std::string aliases_text(const std::vector<std::string>& aliases) {
  return aliases.empty() ? "" : fmt::format(" Also called `{}`.", fmt::join(aliases, "`, `"));
}

void add(std::string& text, const std::string& block) {
  text += block;
  while (ends_with(text, "\n\n")) text.pop_back();
  if (!ends_with(text, "\n")) text += '\n';
}

std::string sentence(std::string text) {
  if (!text.empty()) text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  return text.empty() || text.back() == '.' ? text : text + ".";
}

std::string commands() {
  std::string text = "\n## Commands\n";
  for (const CommandRecord* command : Registry<CommandRecord>::instance().all()) {
    std::string usage = "ch " + command->name;
    for (const Positional& positional : command->positionals)
      usage += positional.required ? " " + positional.name : " [" + positional.name + "]";
    add(text, fmt::format("\n### `{}`\n\n{}\n", usage, sentence(command->summary)));
    if (!command->help.empty()) add(text, "\n" + command->help + "\n");
    for (const Positional& positional : command->positionals)
      add(text, fmt::format("{}- `{}`{}: {}\n", &positional == &command->positionals[0] ? "\n" : "",
                            positional.name,
                            positional.option ? fmt::format(" or `--{}`", positional.name) : "",
                            positional.help));
    add(text, fields_table(command->options, true));
    if (!command->examples.empty()) {
      text += '\n';
      for (const std::string& example : command->examples) text += "    " + example + "\n";
    }
  }
  return text;
}

std::string section(const RecordKind& kind) {
  std::string text = fmt::format("\n## {}\n", kind.heading);
  for (const RecordEntry& entry : kind.entries()) {
    add(text, fmt::format("\n### `{}`\n\n{}{}{}\n", entry.name, sentence(entry.summary), entry.note,
                          aliases_text(entry.aliases)));
    add(text, fields_table(entry.options, false));
  }
  return text;
}

constexpr const char* origin =
    "Printed by `ch reference` from the program's registries; do not edit (`make reference` "
    "rewrites it).\n";

// One page for each kind, and an index.
void write_pages(const std::string& folder) {
  make_directories(folder);
  std::string index = fmt::format("# Reference\n\n{}\n- [Commands](commands.md)\n", origin);
  const auto page = [&](const std::string& name, const std::string& text) {
    write_file_atomically(folder + "/" + name + ".md", "#" + text.substr(3) + "\n" + origin);
  };
  page("commands", commands());
  for (const RecordKind& kind : record_kinds()) {
    page(kind.name, section(kind));
    index += fmt::format("- [{}]({}.md), `ch --info {}`\n", kind.heading, kind.name, kind.name);
  }
  write_file_atomically(folder + "/README.md", index);
}

int run(const Arguments& arguments) {
  if (arguments["output"].is_string()) {
    write_pages(arguments["output"].as_string());
    return 0;
  }
  std::string text = fmt::format("# Reference\n\n{}", origin) + commands();
  for (const RecordKind& kind : record_kinds()) text += section(kind);
  std::fputs(text.c_str(), stdout);
  return 0;
}

const Register<CommandRecord> registered{{
    .name = "reference",
    .summary = "print the reference (docs/reference/) from the registries",
    .options = {{{.name = "output",
                  .type = FieldType::text,
                  .help = "a folder: one page for each kind of record, and an index"}}},
    .run = run,
}};

}  // namespace
}  // namespace mase::reference_command
