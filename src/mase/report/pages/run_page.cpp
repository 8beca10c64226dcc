// SPDX-License-Identifier: Apache-2.0
#include "mase/report/pages/run_page.h"

#include <algorithm>
#include <filesystem>

#include "mase/base/error.h"
#include "mase/base/text.h"
#include "mase/report/pages/hardware_page.h"
#include "mase/report/pages/run_parts.h"
#include "mase/report/pages/search_page.h"

namespace mase {
namespace {

std::vector<std::string> runs_below(const std::vector<std::string>& words) {
  std::vector<std::string> folders;
  for (const std::string& word : words) {
    std::error_code ignored;
    if (!std::filesystem::is_directory(word, ignored))
      throw Error(word,
                  std::filesystem::exists(word, ignored) ? "is not a folder" : "does not exist",
                  "give a run folder, such as one below mase_output");
    const std::vector<std::string> found = find_run_folders(word);
    if (found.empty())
      throw Error(word, "holds no run",
                  "give a folder that holds run.json, such as one below mase_output");
    folders.insert(folders.end(), found.begin(), found.end());
  }
  return folders;
}

// The emitted designs among these folders, if they are all that.
std::vector<std::string> designs_below(const std::vector<std::string>& words) {
  std::vector<std::string> folders;
  for (const std::string& word : words) {
    const std::vector<std::string> found = find_design_folders(word);
    if (found.empty()) return {};
    folders.insert(folders.end(), found.begin(), found.end());
  }
  return folders;
}

// Runs of the same name from different places are told apart by the shortest ends of their paths.
void tell_names_apart(std::vector<RunData>& runs) {
  const auto end_of = [](const std::string& folder, size_t parts) {
    std::vector<std::string> all =
        split(std::filesystem::path(folder).lexically_normal().generic_string(), '/');
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

}  // namespace

PageContent runs_content(const std::vector<RunData>& runs, const FailedRuns& failed) {
  if (runs.size() != 1 || !failed.empty())
    return {compare_frame(runs), compare_parts(runs, failed)};
  return {run_frame(runs.front()), run_parts(runs.front())};
}

namespace {

RunPage finished_page(RunPage page, PageContent content, const std::string& title,
                      const std::string& generator) {
  if (!title.empty()) content.frame.title = title;
  content.frame.generator = generator;
  page.html = page_html(content.frame, content.parts);
  for (const PagePart& part : content.parts) page.plain += part.html;
  return page;
}

}  // namespace

RunPage search_run_page(const Value& record, const std::string& title,
                        const std::string& generator) {
  RunPage page;
  page.what = "study";
  return finished_page(std::move(page), {search_frame(record), search_parts(record)}, title,
                       generator);
}

RunPage run_page(const std::vector<std::string>& folders, const std::string& title,
                 const std::string& generator) {
  RunPage page;
  PageContent content;
  page.folders = designs_below(folders);
  if (!page.folders.empty()) {
    std::vector<DesignData> designs;
    for (const std::string& folder : page.folders) designs.push_back(read_design(folder));
    content = {design_frame(designs), design_parts(designs)};
    page.what = "design";
  } else {
    page.folders = runs_below(folders);
    std::vector<RunData> runs;
    for (const std::string& folder : page.folders) runs.push_back(read_run(folder));
    tell_names_apart(runs);
    const auto search = runs.size() == 1 ? read_search_record(page.folders.front()) : std::nullopt;
    if (search) {
      content = {search_frame(*search), search_parts(*search)};
      content.frame.title = runs.front().name;
    } else {
      content = runs_content(runs);
    }
  }
  return finished_page(std::move(page), std::move(content), title, generator);
}

}  // namespace mase
