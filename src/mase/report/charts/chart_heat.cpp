// SPDX-License-Identifier: Apache-2.0
// A heat map as a table: cells say their value, how many runs it stands for and its deviation over
// seeds; a cell without a value says why.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "mase/base/error.h"
#include "mase/report/charts/chart_frame.h"
#include "mase/report/charts/charts.h"
#include "mase/report/pages/html.h"
#include "mase/report/text/plot.h"

namespace mase {
namespace {

std::string cell_html(const HeatMap& map, const HeatCell& cell, double low, double high) {
  const auto number = [&](double value) {
    return map.number == NumberText::plain ? short_number(value) : exact_text(value, map.number);
  };
  const std::string hover =
      cell.text.hover.empty() ? "" : " title=\"" + escaped(cell.text.hover) + "\"";
  if (!cell.value || !std::isfinite(*cell.value)) {
    std::string why = cell.text.label;
    if (cell.count > 0) why = fmt::format("n = {}{}{}", cell.count, why.empty() ? "" : ", ", why);
    return fmt::format("<td class=\"cell{}\"{}>–{}</td>", why.empty() ? "" : " unbalanced", hover,
                       why.empty() ? "" : "<small>" + escaped(why) + "</small>");
  }
  double good = high > low ? (*cell.value - low) / (high - low) : 0.5;
  if (!map.higher_is_better && high > low) good = 1 - good;
  std::string below;
  if (cell.deviation && cell.count > 1) below = "± " + number(*cell.deviation);
  if (cell.count > 0) below += fmt::format("{}n = {}", below.empty() ? "" : ", ", cell.count);
  std::string text = number(*cell.value);
  const std::string link = safe_link(cell.text.link);
  if (!link.empty()) text = "<a href=\"" + link + "\">" + text + "</a>";
  return fmt::format("<td class=\"cell{}{}\" style=\"--share:{:.3f}\"{}>{}{}</td>",
                     good > 0.7 ? " strong" : "", good == 1 ? " winner" : "", good, hover, text,
                     below.empty() ? "" : "<small>" + escaped(below) + "</small>");
}

}  // namespace

std::string heat_map(const HeatMap& map) {
  MASE_CHECK(map.cells.size() == map.rows.size(), "{} rows of cells, {} names", map.cells.size(),
             map.rows.size());
  double low = INFINITY, high = -INFINITY;
  for (const auto& row : map.cells)
    for (const HeatCell& cell : row)
      if (cell.value && std::isfinite(*cell.value)) {
        low = std::min(low, *cell.value);
        high = std::max(high, *cell.value);
      }
  if (low > high) return no_chart(map.title);
  std::string html = fmt::format(
      "<figure class=\"heat drawn\"><figcaption>{}: <strong>{}</strong> (down) and "
      "<strong>{}</strong> (across)</figcaption><div class=\"scroll\" tabindex=\"0\" "
      "role=\"region\" aria-label=\"{}\"><table class=\"matrix\"><thead><tr><td></td>",
      escaped(map.title), escaped(map.row_name), escaped(map.column_name), escaped(map.title));
  for (const std::string& name : map.columns)
    html += "<th scope=\"col\">" + escaped(name) + "</th>";
  html += "</tr></thead><tbody>";
  for (size_t r = 0; r < map.rows.size(); ++r) {
    MASE_CHECK(map.cells[r].size() == map.columns.size(), "row {} has {} cells, not {}", r,
               map.cells[r].size(), map.columns.size());
    html += "<tr><th scope=\"row\">" + escaped(map.rows[r]) + "</th>";
    for (const HeatCell& cell : map.cells[r]) html += cell_html(map, cell, low, high);
    html += "</tr>";
  }
  return html + "</tbody></table></div></figure>";
}

}  // namespace mase
