// SPDX-License-Identifier: Apache-2.0
// Pages: one self-contained HTML file holding the front-end bundle (web/) and the data as JSON.
// Nothing is fetched, every text stays text, and a content policy allows the bundle alone to run.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "mase/base/value.h"
#include "mase/report/run_folder.h"

namespace mase {

struct PageOptions {
  std::string title;  // the run's name if empty
  std::string generator = "ch";
  std::string live_url;  // polled for newer data; empty for a page from disk
  double live_seconds = 2;
  std::string home;    // a link back to the list
  std::string folder;  // of a list: where its runs are
  Value sweep;         // what a sweep adds: {"failed": [{"name", "cause"}]}
};

// One run in full, or several for comparison (curves, options and results of each).
Value page_data(const std::vector<RunData>& runs, const PageOptions& options);

// A list of runs with identifiers, for `ch view`.
struct ListedRun {
  std::string id;
  RunData run;
};
// What a comparison or a list needs of run.json; the rest would only make the page heavy.
Value run_outline(const Value& run, bool with_options);
Value list_data(const std::vector<ListedRun>& runs, const PageOptions& options);

// `data` as its JSON, with a digest of the content, so that a poller sees whether it changed.
std::string page_json(Value data);
// `plain` is shown where no script runs (plain_page.h).
std::string page_html(const std::string& json, const std::string& title, bool live,
                      const std::string& plain = "");

// The frame of every page: head, content policy, style, body.
std::string document_html(const std::string& title, const std::string& policy,
                          const std::string& body);

// "run=a%20b&run=c": what names runs in an address.
std::string run_query(const std::vector<std::string>& ids);

// The bundle (web/dist), embedded by the build.
std::string_view page_script();
std::string_view page_style();

}  // namespace mase
