// SPDX-License-Identifier: Apache-2.0
#include "mase/report/html.h"

#include <algorithm>

#include "mase/base/text.h"
#include "mase/report/utf8.h"

namespace mase {

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : valid_utf8(text)) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      case '\'':
        result += "&#39;";
        break;
      default:
        result += c;
    }
  }
  return result;
}

std::string safe_link(std::string_view address) {
  const bool plain = std::all_of(address.begin(), address.end(),
                                 [](unsigned char c) { return c > 0x20 && c != 0x7F; });
  if (!plain || address.empty() || starts_with(address, "//")) return "";
  const size_t colon = address.find(':'), slash = address.find_first_of("/?#");
  const bool scheme = colon != std::string_view::npos && colon < slash;
  if (scheme && !starts_with(address, "https://") && !starts_with(address, "http://")) return "";
  return escaped(address);
}

std::string html_table(const HtmlTable& table) {
  const auto number = [&](size_t column) {
    return column < table.numeric.size() && table.numeric[column] ? " class=\"num\"" : "";
  };
  std::string html = "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"" +
                     escaped(table.caption) + "\"><table class=\"fixed\"><caption>" +
                     escaped(table.caption) + "</caption><thead><tr>";
  for (size_t i = 0; i < table.header.size(); ++i)
    html += "<th scope=\"col\"" + std::string(number(i)) + ">" + escaped(table.header[i]) + "</th>";
  html += "</tr></thead><tbody>";
  for (size_t r = 0; r < table.rows.size(); ++r) {
    html += "<tr>";
    for (size_t i = 0; i < table.rows[r].size(); ++i) {
      const std::string link = i == 0 && r < table.links.size() ? safe_link(table.links[r]) : "";
      const std::string text = escaped(table.rows[r][i]);
      html += "<td" + std::string(number(i)) + ">" +
              (link.empty() ? text : "<a href=\"" + link + "\">" + text + "</a>") + "</td>";
    }
    html += "</tr>";
  }
  return html + "</tbody></table></div>";
}

}  // namespace mase
