// SPDX-License-Identifier: Apache-2.0
// ch report: one self-contained page for a run, or for several compared.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "mase/base/file.h"
#include "mase/cli/command.h"
#include "mase/report/plain_page.h"
#include "mase/report/search_page.h"

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

// Runs of the same name from different places are told apart by the shortest ends of their paths.
void tell_apart(std::vector<RunData>& runs) {
  const auto end_of = [](const std::string& folder, size_t parts) {
    std::vector<std::string> all = split(fs::path(folder).lexically_normal().generic_string(), '/');
    while (!all.empty() && all.back().empty()) all.pop_back();
    if (all.size() > parts) all.erase(all.begin(), all.end() - static_cast<int64_t>(parts));
    return join(all, "/");
  };
  const auto repeated = [&](const std::string& name) {
    return std::count_if(runs.begin(), runs.end(),
                         [&](const RunData& run) { return run.name == name; }) > 1;
  };
  constexpr size_t deepest = 64;
  for (size_t parts = 2; parts <= deepest; ++parts) {
    std::vector<RunData*> same;
    for (RunData& run : runs)
      if (repeated(run.name)) same.push_back(&run);
    if (same.empty()) return;
    for (RunData* run : same) run->name = end_of(run->folder, parts);
  }
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
  std::string page;
  const auto search = runs.size() == 1 ? read_search_record(folders.front()) : std::nullopt;
  if (search) {
    page = search_page(*search, options.title.empty() ? runs.front().name : options.title,
                       options.generator);
  } else {
    const Value data = page_data(runs, options);
    page = page_html(page_json(data), data["title"].as_string(), false, plain_runs(runs));
  }
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
