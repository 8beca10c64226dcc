// SPDX-License-Identifier: Apache-2.0
// ch report: one self-contained page for a run, or for several compared.
#include <fmt/format.h>

#include <filesystem>

#include "mase/base/file.h"
#include "mase/cli/command.h"
#include "mase/report/pages/run_page.h"
#include "mase/run/search/study_record.h"
#include "mase/search/storages/storage.h"

namespace mase::report_command {
namespace {

// Of a study in a storage: one that Optuna continued, or that goes on elsewhere.
int report_study(const Arguments& arguments, const std::string& address, const std::string& title) {
  const std::string name = arguments["study"].is_string() ? arguments["study"].as_string() : "";
  const Value record = study_record(address, name);
  const RunPage page = search_run_page(record, title, fmt::format("ch {}", program_version()));
  const std::string output =
      arguments["output"].is_string() ? arguments["output"].as_string() : "study.html";
  write_file_atomically(output, page.html);
  fmt::print("{}: study '{}', {} trials, {}\n", printable(output),
             printable(record["study"].as_string()), record["total"].as_int(),
             human_bytes(static_cast<double>(page.html.size())));
  return 0;
}

int run(const Arguments& arguments) {
  const std::vector<std::string> words = arguments["runs"].as_string_list();
  std::error_code none;
  if (words.size() == 1 && search::is_storage_address(words[0]) &&
      !std::filesystem::is_directory(words[0], none))
    return report_study(arguments, words[0],
                        arguments["title"].is_string() ? arguments["title"].as_string() : "");
  if (arguments.was_typed("study"))
    throw Error("--study", "is the name of a study in a storage",
                "give its address: ch report sqlite:///study.db --study NAME");
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
        "neuron with its line of SystemVerilog; of several designs a comparison. So have studies: "
        "the address of a storage (sqlite:///FILE.db, journal:FILE, postgresql://...) with one "
        "that Optuna made or continued.",
    .positionals = {{.name = "runs",
                     .help = "run folders, such as mase_output/NAME, emitted designs, or the "
                             "storage of a study",
                     .many = true}},
    .options = {{{.name = "output",
                  .type = FieldType::text,
                  .help = "the file to write (default: RUN/report.html, or comparison.html for "
                          "several runs)"},
                 {.name = "study",
                  .type = FieldType::text,
                  .help = "which study of a storage (default: the only one)"},
                 {.name = "title", .type = FieldType::text, .help = "heading of the page"}}},
    .examples = {"ch report mase_output/jsc-tiny_classification_jsc_2024-01-31",
                 "ch report mase_output/hardware", "ch report sqlite:///study.db --study lab4",
                 "ch report mase_output/batch_64 mase_output/batch_256 --output lab1.html"},
    .run = run,
}};

}  // namespace
}  // namespace mase::report_command
