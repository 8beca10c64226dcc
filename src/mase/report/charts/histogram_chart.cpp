// SPDX-License-Identifier: Apache-2.0
#include "mase/report/charts/histogram_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "mase/base/text.h"
#include "mase/report/pages/html.h"
#include "mase/report/pages/shown.h"
#include "mase/report/text/plot.h"

namespace mase {
namespace {

constexpr double width = 330, height = 128, base = height - 30;

struct Span {
  double from, to;
  double place(double value) const {
    return 6 + (std::clamp(value, from, to) - from) / (to - from) * (width - 12);
  }
};

// The format's own numbers under the axis: a tick each, or a band where they lie closer than two
// pixels.
std::string grid_marks(const Value& grid, const Span& span) {
  std::vector<double> at;
  for (const Value& one : shown::items(grid))
    if (const auto value = shown::number(one); value && *value >= span.from && *value <= span.to)
      at.push_back(span.place(*value));
  if (at.empty()) return "";
  std::sort(at.begin(), at.end());
  std::string marks = fmt::format("<g class=\"grid-marks\" data-marks=\"{}\">", at.size()), path;
  double begin = at[0];
  for (size_t i = 0; i < at.size(); ++i) {
    const bool last = i + 1 == at.size();
    if (!last && at[i + 1] - at[i] < 2) continue;
    if (at[i] - begin > 2)
      marks += fmt::format(
          "<rect x=\"{:.1f}\" y=\"{}\" width=\"{:.1f}\" height=\"6\" class=\"grid-band\"/>", begin,
          base + 1, at[i] - begin);
    else
      path += fmt::format("M{:.1f} {}v6", at[i], base + 1);
    if (!last) begin = at[i + 1];
  }
  if (!path.empty()) marks += "<path d=\"" + path + "\" class=\"grid-mark\"/>";
  return marks + "</g>";
}

}  // namespace

std::string histogram_chart(const Value& record) {
  using shown::number;
  if (!record.is_dict()) return "";
  std::vector<double> edges, counts;
  for (const Value& one : shown::items(record["edges"])) {
    if (!number(one)) return "";
    edges.push_back(*number(one));
  }
  for (const Value& one : shown::items(record["counts"]))
    counts.push_back(std::max(0.0, number(one).value_or(0)));
  if (counts.empty() || edges.size() != counts.size() + 1) return "";
  const auto lowest = number(record["lowest"]), largest = number(record["largest"]);
  const bool known = lowest || largest;
  const double first = edges.front(), last = edges.back();
  const double reach = last > first ? 0.35 * (last - first) : 0.35;
  // Part of an unused range is shown; a far wider format is drawn to the edge.
  Span span{lowest && *lowest < first ? std::max(*lowest, first - reach) : first,
            largest && *largest > last ? std::min(*largest, last + reach) : last};
  const bool constant = !(span.to > span.from);
  if (constant || first == last) {
    const double around = std::max(std::abs(first) * 0.5, 0.5);
    span = {span.from - around, span.to + around};
  }
  double total = 0, outside = 0;
  const auto is_lost = [&](size_t i) {
    const double middle = (edges[i] + edges[i + 1]) / 2;
    return (lowest && middle < *lowest) || (largest && middle > *largest);
  };
  for (size_t i = 0; i < counts.size(); ++i) {
    total += counts[i];
    if (is_lost(i)) outside += counts[i];
  }
  const double share = number(record["saturation"]).value_or(total > 0 ? outside / total : 0);
  std::string svg;
  if (known) {
    const double begin = span.place(lowest.value_or(span.from)),
                 end = span.place(largest.value_or(span.to));
    svg +=
        fmt::format("<rect x=\"{:.1f}\" y=\"4\" width=\"{:.1f}\" height=\"{}\" class=\"range\"/>",
                    begin, std::max(1.0, end - begin), base - 4);
    const std::string marks = grid_marks(record["grid"], span);
    svg += !marks.empty() ? marks
                          : fmt::format(
                                "<rect x=\"{:.1f}\" y=\"{}\" width=\"{:.1f}\" height=\"3\" "
                                "class=\"range-bar\"/>",
                                begin, base + 1, std::max(1.0, end - begin));
  }
  const double peak = std::max(1e-9, *std::max_element(counts.begin(), counts.end()));
  for (size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] <= 0) continue;
    const double tall = std::max(1.0, counts[i] / peak * (base - 8));
    const double x = span.place(edges[i]);
    svg += fmt::format(
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" "
        "class=\"bar{}\"><title>{} "
        "to {}: {}{}</title></rect>",
        x, base - tall, std::max(first == last ? 5.0 : 0.6, span.place(edges[i + 1]) - x - 0.4),
        tall, is_lost(i) ? " lost" : "", shown::brief(edges[i]), shown::brief(edges[i + 1]),
        shown::whole(counts[i]), is_lost(i) ? " (saturated)" : "");
  }
  for (const double tick : axis_ticks(span.from, span.to, 4))
    svg += fmt::format(
        "<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\" class=\"tick\">{}</text>",
        std::clamp(span.place(tick), 14.0, width - 14), height - 6, escaped(short_number(tick)));
  const std::string node = shown::text(record["node"]), operand = shown::text(record["operand"]);
  const auto codes = number(record["codes"]), used = number(record["codes_used"]);
  std::vector<std::string> words;
  if (codes && used)
    words.push_back(fmt::format("{} of {} codes used", shown::whole(used), shown::whole(codes)));
  if (known)
    words.push_back(
        fmt::format("representable {} … {}", shown::brief(lowest), shown::brief(largest)));
  words.push_back(fmt::format("seen {} … {}", shown::brief(first), shown::brief(last)));
  std::string badge;
  if (known)
    badge = fmt::format(
        "<span class=\"badge {}\">{}</span>",
        share > 0.01 ? "bad"
        : share > 0  ? "warn"
                     : "good",
        share <= 0 ? "no saturation"
                   : (share < 0.0001 ? "&lt; 0.01 %" : shown::percent(share)) + " saturated");
  return fmt::format(
      "<figure class=\"histogram\" data-node=\"{0}\" data-operand=\"{1}\"><figcaption><span>"
      "<strong>{0}</strong> {1}</span>{2}</figcaption><svg viewBox=\"0 0 {3} {4}\" role=\"img\" "
      "aria-label=\"{0} {1}: {5}\">{6}</svg><p class=\"small\">{5}</p></figure>",
      escaped(node), escaped(operand), badge, width, height, escaped(join(words, "; ")), svg);
}

}  // namespace mase
