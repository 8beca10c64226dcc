// SPDX-License-Identifier: Apache-2.0
// What a page shows where no script runs: the figures as tables, the curves as pictures. And whole
// pages made of such parts alone, for whoever has charts and tables but no run folders to show.
#pragma once

#include <string>
#include <vector>

#include "mase/report/page.h"

namespace mase {

std::string plain_runs(const std::vector<RunData>& runs);
std::string plain_list(const std::vector<ListedRun>& runs);

struct PagePart {
  std::string id, title;  // the heading, and what #id in an address leads to
  std::string html;       // of charts.h and html.h; never text from outside
};

// One self-contained page without any script.
std::string parts_page(const std::string& title, const std::string& subtitle,
                       const std::vector<PagePart>& parts, const std::string& generator = "ch");

}  // namespace mase
