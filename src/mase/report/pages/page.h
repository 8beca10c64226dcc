// SPDX-License-Identifier: Apache-2.0
// Pages: one self-contained HTML file made of parts. Everything is drawn here, so that a page says
// the same without a script, on paper and in the dark; page.js adds hovering, zooming, sorting,
// filtering and downloads. Nothing is fetched but, from `ch view`, the page itself again.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace mase {

struct PagePart {
  std::string id, title;  // the heading, and what #id in an address leads to
  std::string html;       // of charts.h and html.h; never text from outside
};

struct PageFrame {
  std::string title, subtitle;
  std::string measured = {};  // what its figures were measured on
  std::string status = {};    // of a run: finished, running, ...
  std::string generator = "ch";
  std::string home = {};    // a link back to the list
  double live_seconds = 0;  // the page asks for itself again; 0: a page from disk
};

std::string page_html(const PageFrame& frame, const std::vector<PagePart>& parts);

// A word with the colour of what it says: "finished", "failed".
std::string status_class(const std::string& status);

// "run=a%20b&run=c": what names runs in an address.
std::string run_query(const std::vector<std::string>& ids);

// page.js and page.css, embedded by the build.
std::string_view page_script();
std::string_view page_style();

}  // namespace mase
