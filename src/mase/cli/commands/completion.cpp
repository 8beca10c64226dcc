// SPDX-License-Identifier: Apache-2.0
// ch completion bash: a completion script made from the registries.
//   eval "$(ch completion bash)"
#include <cstdio>

#include "mase/cli/command.h"
#include "mase/cli/info.h"
#include "mase/data/dataset.h"
#include "mase/models/model.h"

namespace mase::completion_command {
namespace {

std::string flag(const std::string& name) { return "--" + replace_all(name, "_", "-"); }

std::string words(const std::vector<std::string>& list) { return join(list, " "); }

// What may stand at a positional's place, by its name; paths always may.
std::string positional_words(const Positional& positional) {
  if (positional.name == "model") return words(Registry<ModelRecord>::instance().names());
  if (positional.name == "dataset") return words(Registry<DatasetRecord>::instance().names());
  if (positional.name == "shell") return "bash";
  return "";
}

std::string script() {
  std::string cases, values;
  for (const CommandRecord* command : Registry<CommandRecord>::instance().all()) {
    std::vector<std::string> flags = {"--help"};
    for (const Positional& positional : command->positionals)
      if (positional.option) flags.push_back(flag(positional.name));
    for (const Field& field : command->options.fields) {
      flags.push_back(flag(field.name));
      if (!field.choices.empty())
        values += fmt::format("    {}:{}) choices=\"{}\" ;;\n", command->name, flag(field.name),
                              words(field.choices));
    }
    cases += fmt::format("    {}) flags=\"{}\"; places=(", command->name, words(flags));
    for (const Positional& positional : command->positionals)
      cases += fmt::format("\"{}\" ", positional_words(positional));
    cases += ") ;;\n";
  }
  std::string text = R"(_ch_complete() {
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}
  local command=${COMP_WORDS[1]} flags="" choices="" places=() place=0 i
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "@commands@ --help --version --info" -- "$word"))
    return
  fi
  if [ "$command" = --info ]; then
    COMPREPLY=($(compgen -W "all @kinds@" -- "$word"))
    return
  fi
  case "$command:$before" in
@values@  esac
  if [ -n "$choices" ]; then
    COMPREPLY=($(compgen -W "$choices" -- "$word"))
    return
  fi
  case "$command" in
@cases@  esac
  if [ "${word#-}" != "$word" ]; then
    COMPREPLY=($(compgen -W "$flags" -- "$word"))
    return
  fi
  for ((i = 2; i < COMP_CWORD; ++i)); do
    [ "${COMP_WORDS[i]#-}" != "${COMP_WORDS[i]}" ] && break
    place=$((place + 1))
  done
  COMPREPLY=($(compgen -W "${places[place]}" -- "$word") $(compgen -f -- "$word"))
}
complete -o filenames -F _ch_complete ch
)";
  text = replace_all(text, "@commands@", words(Registry<CommandRecord>::instance().names()));
  text = replace_all(text, "@kinds@", words(info_kinds()));
  text = replace_all(text, "@values@", values);
  return replace_all(text, "@cases@", cases);
}

const Register<CommandRecord> registered{{
    .name = "completion",
    .group = CommandGroup::start,
    .summary = "print a shell completion script",
    .help = "Add  eval \"$(ch completion bash)\"  to ~/.bashrc.",
    .positionals = {{"shell", "bash"}},
    .examples = {"eval \"$(ch completion bash)\""},
    .run =
        [](const Arguments& arguments) {
          const std::string& shell = arguments["shell"].as_string();
          if (shell != "bash")
            throw Error("shell", fmt::format("no completion for '{}'", printable(shell)),
                        "there is one for bash");
          std::fputs(script().c_str(), stdout);
          return 0;
        },
}};

}  // namespace
}  // namespace mase::completion_command
