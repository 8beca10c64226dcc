// SPDX-License-Identifier: Apache-2.0
// ch python, ch notebook: Python with the packages mase and chop first in line. The launcher of a
// checkout does it (scripts/python.sh); here are their help, and what a program that was installed
// without a checkout says.
#include "mase/base/error.h"
#include "mase/cli/command.h"

namespace mase::python_command {
namespace {

CommandRecord launched(const std::string& name, const std::string& summary,
                       const std::string& positional, const std::string& help,
                       const std::string& instead, std::vector<std::string> examples) {
  return {.name = name,
          .group = CommandGroup::start,
          .summary = summary,
          .help = help,
          .positionals = {{positional, "handed on as they are", false, true}},
          .examples = std::move(examples),
          .forwards = true,
          .run = [name, instead](const Arguments&) -> int {
            throw Error(
                "ch " + name, "the launcher of a checkout does this, and this is not one",
                "./ch " + name + " in the checkout, or pip install . there and then " + instead);
          }};
}

const Register<CommandRecord> python{
    launched("python", "run a script, or a prompt, with the packages mase and chop", "script",
             "Scripts written for MASE's package chop run as they are. The packages are built when "
             "they are first needed. Python's own options stand before the script.",
             "python3", {"ch python examples/lab1.py", "ch python -c 'import mase'"})};

const Register<CommandRecord> notebook{
    launched("notebook", "start Jupyter with the packages mase and chop", "arguments",
             "Jupyter has to be installed.", "jupyter", {"ch notebook examples"})};

}  // namespace
}  // namespace mase::python_command
