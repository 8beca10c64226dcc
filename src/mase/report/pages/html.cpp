// SPDX-License-Identifier: Apache-2.0
#include "mase/report/pages/html.h"

#include <algorithm>

#include "mase/base/text.h"
#include "mase/report/text/utf8.h"

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
  const auto cell_class = [&](size_t column, const std::string& style) {
    std::string names = column < table.numeric.size() && table.numeric[column] ? "num" : "";
    if (!style.empty()) names += (names.empty() ? "" : " ") + style;
    return names.empty() ? "" : " class=\"" + names + "\"";
  };
  const auto attribute = [](const char* name, const std::string& value) {
    return value.empty() ? "" : std::string(" ") + name + "=\"" + escaped(value) + "\"";
  };
  std::string html = "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"" +
                     escaped(table.caption) + "\"><table" + attribute("id", table.id) +
                     " class=\"fixed\"><caption>" + escaped(table.caption) +
                     "</caption><thead><tr>";
  for (size_t i = 0; i < table.header.size(); ++i)
    html += "<th scope=\"col\"" + cell_class(i, "") + ">" + escaped(table.header[i]) + "</th>";
  html += "</tr></thead><tbody>";
  for (size_t r = 0; r < table.rows.size(); ++r) {
    const bool run = r < table.colours.size();
    html += run ? "<tr data-run=\"" + std::to_string(r) + "\">" : "<tr>";
    for (size_t i = 0; i < table.rows[r].size(); ++i) {
      const HtmlCell& cell = table.rows[r][i];
      const std::string link = i == 0 && r < table.links.size() ? safe_link(table.links[r]) : "";
      html += "<td" + cell_class(i, cell.style) + attribute("data-key", cell.key) +
              attribute("title", cell.hover) + ">";
      if (i == 0 && table.choose && r < table.chosen_ids.size())
        html += "<input type=\"checkbox\" hidden name=\"run\" value=\"" +
                escaped(table.chosen_ids[r]) + "\" aria-label=\"compare " + escaped(cell.text) +
                "\"> ";
      if (i == 0 && run)
        html += "<span class=\"swatch\" style=\"background:" + table.colours[r] + "\"></span> ";
      const std::string text = escaped(cell.text);
      html += (link.empty() ? text : "<a href=\"" + link + "\">" + text + "</a>") + "</td>";
    }
    html += "</tr>";
  }
  return html + "</tbody></table></div>";
}

std::string note_html(std::string_view text) {
  return "<p class=\"note\">" + escaped(text) + "</p>";
}

std::string facts_html(const std::vector<std::pair<std::string, std::string>>& facts,
                       const std::string& id) {
  std::string html;
  for (const auto& [label, value] : facts)
    if (!value.empty() && value != "–")
      html += "<dt>" + escaped(label) + "</dt><dd>" + escaped(value) + "</dd>";
  if (html.empty()) return "";
  return "<dl class=\"facts\"" + (id.empty() ? "" : " id=\"" + escaped(id) + "\"") + ">" + html +
         "</dl>";
}

std::string folded_html(const std::string& heading, const std::string& html, bool open) {
  return std::string(open ? "<details open>" : "<details>") + "<summary>" + escaped(heading) +
         "</summary>" + html + "</details>";
}

}  // namespace mase
