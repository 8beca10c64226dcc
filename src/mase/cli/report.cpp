// SPDX-License-Identifier: Apache-2.0
// ch report: one self-contained page for a run, or for several compared.
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>

#include "mase/base/file.h"
#include "mase/cli/command.h"
#include "mase/report/page.h"

namespace mase::report_command {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> run_folders(const std::vector<std::string>& words) {
  std::vector<std::string> folders;
  for (const std::string& word : words) {
    std::error_code ignored;
    if (!fs::is_directory(word, ignored))
      throw Error(word, fs::exists(word, ignored) ? "is not a folder" : "does not exist",
                  "give a run folder, such as one below mase_output");
    const std::vector<std::string> found = find_run_folders(word);
    if (found.empty())
      throw Error(word, "holds no run",
                  "give a folder that holds run.json, such as one below mase_output");
    folders.insert(folders.end(), found.begin(), found.end());
  }
  return folders;
}

// Runs of the same name from different places are told apart by their paths.
void tell_apart(std::vector<RunData>& runs) {
  for (size_t i = 0; i < runs.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      if (runs[i].name == runs[j].name) runs[i].name = runs[i].folder;
}

int run(const Arguments& arguments) {
  const std::vector<std::string> folders = run_folders(arguments["runs"].as_string_list());
  std::vector<RunData> runs;
  for (const std::string& folder : folders) runs.push_back(read_run(folder));
  tell_apart(runs);
  std::string output = runs.size() == 1 ? folders.front() + "/report.html" : "comparison.html";
  if (arguments["output"].is_string()) output = arguments["output"].as_string();
  PageOptions options;
  options.generator = fmt::format("ch {}", program_version());
  if (arguments["title"].is_string()) options.title = arguments["title"].as_string();
  const Value data = page_data(runs, options);
  const std::string page = page_html(page_json(data), data["title"].as_string(), false);
  write_file_atomically(output, page);
  fmt::print("{}: {}, {}\n", printable(output),
             runs.size() == 1 ? "1 run" : fmt::format("{} runs", runs.size()),
             human_bytes(static_cast<double>(page.size())));
  return 0;
}

const Register<CommandRecord> registered{{
    .name = "report",
    .group = CommandGroup::look,
    .summary = "write a page with the figures of a run, or of several compared",
    .help = "The page is one HTML file: it opens from disk, needs no network and prints well. A "
            "folder that holds several runs stands for all of them.",
    .positionals = {{.name = "runs",
                     .help = "run folders, such as mase_output/NAME",
                     .many = true}},
    .options = {{{.name = "output",
                  .type = FieldType::text,
                  .help = "the file to write (default: RUN/report.html, or comparison.html for "
                          "several runs)"},
                 {.name = "title", .type = FieldType::text, .help = "heading of the page"}}},
    .examples = {"ch report mase_output/jsc-tiny_classification_jsc_2024-01-31",
                 "ch report mase_output/batch_64 mase_output/batch_256 --output lab1.html"},
    .run = run,
}};

}  // namespace
}  // namespace mase::report_command
