// SPDX-License-Identifier: Apache-2.0
// The program: runs the command that is named and catches errors once. Exit codes: 0 done, 1
// failed, 2 the user's mistake, 130 interrupted.
#include <cstdio>
#include <filesystem>
#include <new>

#include "mase/cli/about.h"
#include "mase/cli/arguments.h"
#include "mase/cli/command.h"
#include "mase/cli/info.h"
#include "mase/cli/plugin.h"
#include "mase/cli/terminal.h"

namespace mase {
namespace {

const CommandRecord* find_command(const std::string& word) {
  return Registry<CommandRecord>::instance().find(word);
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
      "  -V, --version         version, commit, compiler, instruction sets, optional libraries\n"
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
    fmt::print("{}", about_text());
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
  Arguments arguments;
  std::string help;
  if (!parse_arguments(*command, {argv + 2, argv + argc}, arguments, help)) {
    std::fputs(help.c_str(), stdout);
    return 0;
  }
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
