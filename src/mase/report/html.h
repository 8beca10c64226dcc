// SPDX-License-Identifier: Apache-2.0
// Pieces of HTML and SVG made from plain text: everything that comes from outside goes through
// `escaped`, so that no name can become markup.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace mase {

// For text and for attributes in double quotes; invalid UTF-8 is replaced.
std::string escaped(std::string_view text);

// Only addresses within the page or the server, or of the web, become links; others give "".
std::string safe_link(std::string_view address);

struct HtmlTable {
  std::string caption;
  std::vector<std::string> header;
  std::vector<std::vector<std::string>> rows;  // plain text
  std::vector<std::string> links = {};         // of the first cell of each row; may be shorter
  std::vector<bool> numeric = {};              // columns aligned right; may be shorter
};

std::string html_table(const HtmlTable& table);

}  // namespace mase
