// SPDX-License-Identifier: Apache-2.0
// ch reference: everything the registries hold, as Markdown. docs/reference/ is its output, and a
// check holds it current, so it must not depend on the machine.
#include <cctype>
#include <cstdio>

#include "mase/base/file.h"
#include "mase/base/table.h"
#include "mase/base/text.h"
#include "mase/cli/command.h"
#include "mase/cli/limits.h"
#include "mase/cli/record_kinds.h"

namespace mase::reference_command {
namespace {

// Help is plain text: what Markdown would take for its own is marked.
std::string plain(std::string text) {
  for (const char* mark : {"_", "*", "<"}) text = replace_all(text, mark, std::string("\\") + mark);
  return text;
}

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
    table.add({"`" + name + "`", type, quoted ? "`" + escaped(usual) + "`" : usual,
               plain(escaped(help))});
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

// `level`: of the first heading, 1 on a page of its own.
std::string heading(int level, const std::string& text) {
  return fmt::format("\n{} {}\n", std::string(static_cast<size_t>(level), '#'), text);
}

std::string command_text(const CommandRecord& command, int level) {
  std::string usage = "ch " + command.name;
  for (const Positional& positional : command.positionals)
    usage += positional.required ? " " + positional.name : " [" + positional.name + "]";
  std::string text = heading(level, "`ch " + command.name + "`");
  add(text, fmt::format("\n{} Usage: `{} [OPTIONS]`\n", plain(sentence(command.summary)), usage));
  if (!command.examples.empty()) text += '\n';
  for (const std::string& example : command.examples) text += "    " + example + "\n";
  if (!command.help.empty()) add(text, "\n" + plain(command.help) + "\n");
  for (const Positional& positional : command.positionals)
    add(text, fmt::format("{}- `{}`{}: {}\n", &positional == &command.positionals[0] ? "\n" : "",
                          positional.name,
                          positional.option ? fmt::format(" or `--{}`", positional.name) : "",
                          plain(positional.help)));
  add(text, fields_table(command.options, true));
  return text;
}

std::string section(const RecordKind& kind, int level) {
  std::string text = heading(level, kind.heading);
  for (const RecordEntry& entry : kind.entries()) {
    text += heading(level + 1, "`" + entry.name + "`");
    add(text, fmt::format("\n{}{}{}\n", sentence(entry.summary), entry.note,
                          aliases_text(entry.aliases)));
    add(text, fields_table(entry.options, false));
  }
  return text;
}

constexpr const char* origin =
    "Printed by `ch reference` from the program's registries; do not edit (`make reference` "
    "rewrites it).\n";

// One page for each kind of record and each command, and an index.
void write_pages(const std::string& folder) {
  make_directories(folder + "/commands");
  const auto page = [&](const std::string& name, const std::string& text) {
    write_file_atomically(folder + "/" + name + ".md", text + "\n" + origin);
  };
  std::string list = "# Commands\n\n";
  for (const CommandRecord* command : Registry<CommandRecord>::instance().all()) {
    page("commands/" + command->name, command_text(*command, 1).substr(1));
    list += fmt::format("- [`{}`](commands/{}.md): {}\n", command->name, command->name,
                        plain(command->summary));
  }
  page("commands", list);
  std::string index = fmt::format("# Reference\n\n{}\n- [Commands](commands.md)\n", origin);
  for (const RecordKind& kind : record_kinds()) {
    page(kind.name, section(kind, 1).substr(1));
    index += fmt::format("- [{}]({}.md), `ch --info {}`\n", kind.heading, kind.name, kind.name);
  }
  page("limits", limits_page());
  index += "- [Limits](limits.md), found by trying\n";
  write_file_atomically(folder + "/README.md", index);
}

// ch.1: what ch --help and the commands' own help say, as the manual's pages are written.
std::string manual_text(const std::string& text) {
  std::string safe = replace_all(replace_all(text, "\\", "\\e"), "-", "\\-");
  std::string lines;
  for (const std::string& line : split(safe, '\n'))  // a leading dot would be a request
    lines += (starts_with(line, ".") || starts_with(line, "'") ? "\\&" : "") + line + "\n";
  return lines;
}

std::string manual() {
  std::string text = fmt::format(
      ".TH CH 1 \"\" \"ch {}\" \"User Commands\"\n.SH NAME\n"
      "ch \\- neural networks from training to number formats to hardware\n.SH SYNOPSIS\n"
      ".B ch\n.I COMMAND\n[ARGUMENTS] [OPTIONS]\n.SH COMMANDS\n",
      program_version());
  for (const CommandRecord* command : Registry<CommandRecord>::instance().all()) {
    std::string words;
    for (const Positional& positional : command->positionals)
      words += positional.required ? " " + positional.name : " [" + positional.name + "]";
    text +=
        fmt::format(".SS ch {}{}\n{}", manual_text(command->name).substr(0, command->name.size()),
                    words, manual_text(sentence(command->summary)));
    for (const std::string& example : command->examples)
      text += ".PP\n.nf\n    " + manual_text(example) + ".fi\n";
    for (const Field& field : command->options.fields)
      text += fmt::format(".TP\n.B \\-\\-{}{}", manual_text(replace_all(field.name, "_", "-")),
                          manual_text(field.help));
  }
  return text +
         ".SH EXIT STATUS\n0 done; 1 failed; 2 the user's mistake, told in one line; 70 a fault of "
         "the program; 130 interrupted.\n.SH ENVIRONMENT\n.TP\n.B MASE_DATA\nthe folder of data "
         "sets (otherwise ~/.cache/mase)\n.TP\n.B NO_COLOR\nno colours on a terminal\n";
}

int run(const Arguments& arguments) {
  if (arguments["manual"].as_bool()) {
    std::fputs(manual().c_str(), stdout);
    return 0;
  }
  if (arguments["output"].is_string()) {
    write_pages(arguments["output"].as_string());
    return 0;
  }
  std::string text = fmt::format("# Reference\n\n{}", origin) + heading(2, "Commands");
  for (const CommandRecord* command : Registry<CommandRecord>::instance().all())
    text += command_text(*command, 3);
  for (const RecordKind& kind : record_kinds()) text += section(kind, 2);
  std::fputs(text.c_str(), stdout);
  return 0;
}

const Register<CommandRecord> registered{{
    .name = "reference",
    .summary = "print the reference (docs/reference/) from the registries",
    .options = {{{.name = "output",
                  .type = FieldType::text,
                  .help = "a folder: one page for each kind of record and each command, and an "
                          "index"},
                 {.name = "manual",
                  .type = FieldType::boolean,
                  .default_value = false,
                  .help = "the manual page instead: ch reference --manual > ch.1"}}},
    .examples = {"ch reference --manual > ch.1", "ch reference --output reference"},
    .run = run,
}};

}  // namespace
}  // namespace mase::reference_command
