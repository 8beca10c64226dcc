// SPDX-License-Identifier: Apache-2.0
// The page of a run, of a search, of several runs compared, or of emitted designs: what `ch report`
// writes.
#pragma once

#include <string>
#include <vector>

#include "mase/report/pages/compare_parts.h"

namespace mase {

struct PageContent {
  PageFrame frame;
  std::vector<PagePart> parts;
};

// Of one run in full, or of several compared.
PageContent runs_content(const std::vector<RunData>& runs, const FailedRuns& failed = {});

struct RunPage {
  std::string html;                  // one self-contained document
  std::string plain;                 // its parts alone, where no frame is shown
  std::vector<std::string> folders;  // of the runs that are on it
  std::string what = "run";          // what those are: runs, or designs of hardware
};

// Of a search, from its record.
RunPage search_run_page(const Value& record, const std::string& title,
                        const std::string& generator);

// A folder that holds several runs stands for all of them. No title: the run's name.
RunPage run_page(const std::vector<std::string>& folders, const std::string& title,
                 const std::string& generator);

}  // namespace mase
