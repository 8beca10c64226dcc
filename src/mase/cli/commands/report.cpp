// SPDX-License-Identifier: Apache-2.0
// ch report: one self-contained page for a run, or for several compared.
#include <fmt/format.h>

#include "mase/base/file.h"
#include "mase/cli/command.h"
#include "mase/report/pages/run_page.h"

namespace mase::report_command {
namespace {

int run(const Arguments& arguments) {
  const std::string title = arguments["title"].is_string() ? arguments["title"].as_string() : "";
  const RunPage page =
      run_page(arguments["runs"].as_string_list(), title, fmt::format("ch {}", program_version()));
  const size_t count = page.folders.size();
  std::string output = count == 1 ? page.folders.front() + "/report.html" : "comparison.html";
  if (arguments["output"].is_string()) output = arguments["output"].as_string();
  write_file_atomically(output, page.html);
  fmt::print("{}: {}, {}\n", printable(output),
             count == 1 ? "1 " + page.what : fmt::format("{} {}s", count, page.what),
             human_bytes(static_cast<double>(page.html.size())));
  return 0;
}

const Register<CommandRecord> registered{{
    .name = "report",
    .group = CommandGroup::look,
    .summary = "write a page with the figures of a run, or of several compared",
    .help =
        "The page is one HTML file: it opens from disk, needs no network and prints well. A "
        "folder that holds several runs stands for all of them. Folders that ch emit wrote have a "
        "page too: checks and proofs, the datapath, accuracy against cost, a bill for every "
        "neuron with its line of SystemVerilog; of several designs a comparison.",
    .positionals = {{.name = "runs",
                     .help = "run folders, such as mase_output/NAME, or emitted designs",
                     .many = true}},
    .options = {{{.name = "output",
                  .type = FieldType::text,
                  .help = "the file to write (default: RUN/report.html, or comparison.html for "
                          "several runs)"},
                 {.name = "title", .type = FieldType::text, .help = "heading of the page"}}},
    .examples = {"ch report mase_output/jsc-tiny_classification_jsc_2024-01-31",
                 "ch report mase_output/hardware",
                 "ch report mase_output/batch_64 mase_output/batch_256 --output lab1.html"},
    .run = run,
}};

}  // namespace
}  // namespace mase::report_command
