// SPDX-License-Identifier: Apache-2.0
// ch doctor: what is installed, what is missing for which feature, and how to get it; and whether
// the kernels of this machine compute what the plain arithmetic does.
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <thread>

#include "mase/base/late_library.h"
#include "mase/base/random.h"
#include "mase/base/table.h"
#include "mase/base/text.h"
#include "mase/cli/about.h"
#include "mase/cli/command.h"
#include "mase/cli/optional_parts.h"
#include "mase/data/dataset.h"
#include "mase/data/jets.h"
#include "mase/engine/program.h"
#include "mase/hardware/tools/tool.h"
#include "mase/ir/evaluate.h"
#include "mase/models/model.h"

namespace mase::doctor_command {
namespace {

// The one that ch python starts, or that a wheel was installed for.
std::string python_program() {
  const char* own = std::getenv("MASE_PYTHON");
  const std::string debian = "/usr/bin/python3";
  return own && *own ? own : tool_exists(debian) ? debian : "python3";
}

// Which of these Python can import, asked once for all of them.
std::string importable(const std::vector<OptionalPart>& parts) {
  if (!tool_exists(python_program())) return "";
  std::string names;
  for (const OptionalPart& part : parts)
    if (part.kind == PartKind::python) names += " " + part.file;
  const ToolResult found =
      run_tool({python_program(), "-c",
                "import importlib.util, sys\n"
                "print(*(name for name in sys.argv[1].split() if importlib.util.find_spec(name)))",
                names},
               ".");
  return found.exit_code == 0 ? " " + strip(found.output) + " " : "";
}

bool is_here(const OptionalPart& part, const std::string& python_packages) {
  switch (part.kind) {
    case PartKind::library:
      return library_exists(part.file);
    case PartKind::program:
      return tool_exists(part.file);
    case PartKind::python:
      return python_packages.find(" " + part.file + " ") != std::string::npos;
  }
  return false;
}

// The engine beside the operations' own arithmetic in double precision.
double largest_difference() {
  const Graph graph = make_model("jsc-toy");
  Array input({64, 16});
  Random random(1, "doctor");
  for (double& value : input.data) value = static_cast<float>(random.normal());
  const std::vector<Tensor> fast = mase::run(graph, {input.to_tensor()});
  const std::vector<Array> slow = evaluate(graph, {input});
  double largest = 0;
  for (int64_t i = 0; i < fast.at(0).numel(); ++i) {
    const double difference =
        std::abs(double{fast[0].data<float>()[i]} - slow.at(0).data[static_cast<size_t>(i)]);
    if (!(difference <= largest)) largest = difference;  // what is not a number stays
  }
  return largest;
}

std::string data_text() {
  const DatasetOptions options;
  std::vector<std::string> here, missing;
  for (const DatasetRecord* record : Registry<DatasetRecord>::instance().all())
    if (record->where && !record->files.empty())
      (record->where(options).empty() ? missing : here).push_back(record->name);
  std::string text = fmt::format("data folder         {}\n", printable(data_folder(options)));
  text += fmt::format("data sets here      {}\n", here.empty() ? "none" : join(here, ", "));
  if (!missing.empty())
    text += fmt::format("not here            {}: ch data fetch NAME\n", join(missing, ", "));
  return text;
}

int run(const Arguments&) {
  fmt::print("{}", about_text());
  const double memory = static_cast<double>(::sysconf(_SC_PHYS_PAGES)) *
                        static_cast<double>(::sysconf(_SC_PAGE_SIZE));
  fmt::print("machine             {} cores, {:.1f} GB of memory\n",
             std::thread::hardware_concurrency(), memory / 1e9);
  fmt::print("{}\n", data_text());

  const std::vector<OptionalPart> parts = optional_parts();
  const std::string python_packages = importable(parts);
  Table table({"Part", "Here", "Serves", "How to get it"});
  int missing = 0;
  for (const OptionalPart& part : parts) {
    const bool here = is_here(part, python_packages);
    missing += here ? 0 : 1;
    table.add({part.name, here ? "yes" : "no", part.serves, here ? "" : part.remedy});
  }
  fmt::print("{}\nPython packages are those of {}.\n", table.str(), printable(python_program()));

  constexpr double rounding = 1e-4;
  const double difference = largest_difference();
  const bool sound = difference < rounding;
  fmt::print("self-test: jsc-toy on 64 drawn rows, engine beside plain arithmetic: {:.1e}, {}\n",
             difference, sound ? "as it should be" : "WRONG");
  if (!sound)
    throw Error("ch doctor", "this machine's kernels compute something else",
                "try --deterministic, and report it with the lines above");
  fmt::print("{}\n", missing == 0 ? "Nothing is missing."
                                  : "What is missing is needed for the features beside it only.");
  return 0;
}

const Register<CommandRecord> registered{{
    .name = "doctor",
    .group = CommandGroup::start,
    .summary = "what is installed, what is missing for which feature, and how to get it",
    .help = "Looks at the libraries, programs and Python packages that some features use, at the "
            "data sets on this machine, and whether the engine computes what the operations' own "
            "arithmetic does. Nothing is installed or written.",
    .examples = {"ch doctor"},
    .run = run,
}};

}  // namespace
}  // namespace mase::doctor_command
