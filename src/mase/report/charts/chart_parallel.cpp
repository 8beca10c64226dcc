// SPDX-License-Identifier: Apache-2.0
// Parallel coordinates: an axis for each option, a line for each trial, the result last.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>

#include "mase/base/error.h"
#include "mase/base/text.h"
#include "mase/report/charts/chart_frame.h"
#include "mase/report/charts/charts.h"
#include "mase/report/pages/html.h"

namespace mase {
namespace {

struct Upright {
  const ParallelAxis* given;
  double x;
  std::optional<Axis> axis;  // none: choices

  double place(double value, const ChartArea& area) const {
    if (axis) return axis->place(value);
    const double share = (value + 0.5) / static_cast<double>(given->choices.size());
    return area.inner_bottom() + share * (area.top - area.inner_bottom());
  }
  bool drawable(double value) const {
    if (axis) return axis->drawable(value);
    return value >= 0 && value < static_cast<double>(given->choices.size());
  }
  std::string text(double value) const {
    if (axis) return axis->exact(value);
    return drawable(value) ? given->choices[static_cast<size_t>(value)] : "–";
  }
};

// "seq_blocks_2/config/weight_width" in two lines, since what tells such names apart is their end.
std::vector<std::string> label_lines(const std::string& label) {
  const size_t slash = label.rfind('/');
  if (slash == std::string::npos) return {label};
  return {replace_all(label.substr(0, slash), "/config", ""), label.substr(slash + 1)};
}

std::string drawn_upright(const Upright& upright, const ChartArea& area) {
  std::string svg = fmt::format(
      "<line x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1:.1f}\" y2=\"{2:.1f}\" class=\"upright\"/>",
      upright.x, area.top, area.inner_bottom());
  const std::vector<std::string> lines = label_lines(upright.given->axis.label);
  for (size_t i = 0; i < lines.size(); ++i) {
    const bool last = i + 1 == lines.size();
    svg += fmt::format(
        "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\" class=\"tick "
        "strong\">{}{}</text>",
        upright.x, area.height - (last ? 8 : 22), escaped(cut_text(lines[i], 18)),
        last && upright.axis && upright.axis->logarithmic() ? " (log)" : "");
  }
  const auto mark = [&](double at, const std::string& text) {
    svg += fmt::format(
        "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\" class=\"tick halo\">{}"
        "</text>",
        upright.x - 5, at + 4, escaped(cut_text(text, 14)));
  };
  if (upright.axis)
    for (const double tick : upright.axis->ticks())
      mark(upright.axis->place(tick), upright.axis->text(tick));
  else
    for (size_t i = 0; i < upright.given->choices.size(); ++i)
      mark(upright.place(static_cast<double>(i), area), upright.given->choices[i]);
  return svg;
}

}  // namespace

std::string parallel_chart(const ParallelChart& chart) {
  if (chart.axes.size() < 2 || chart.lines.empty()) return no_chart(chart.title);
  ChartArea area;
  area.width = std::max(480.0, 150.0 * static_cast<double>(chart.axes.size()));
  area.left = 84;
  area.right = 40;
  std::vector<Upright> uprights;
  for (size_t i = 0; i < chart.axes.size(); ++i) {
    const double x = area.left + (area.inner_right() - area.left) * static_cast<double>(i) /
                                     static_cast<double>(chart.axes.size() - 1);
    std::vector<double> values;
    for (const ParallelLine& line : chart.lines) {
      MASE_CHECK(line.values.size() == chart.axes.size(), "{} values, {} axes", line.values.size(),
                 chart.axes.size());
      values.push_back(line.values[i]);
    }
    Upright upright{&chart.axes[i], x, {}};
    if (chart.axes[i].choices.empty())
      upright.axis.emplace(chart.axes[i].axis, values, area.inner_bottom(), area.top);
    uprights.push_back(std::move(upright));
  }

  // The better a trial, the later it is drawn; what has no result comes first.
  std::vector<size_t> order(chart.lines.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const auto result = [&](size_t i) {
    const double value = chart.lines[i].values.back();
    if (!std::isfinite(value)) return -std::numeric_limits<double>::infinity();
    return chart.higher_is_better ? value : -value;
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return result(a) < result(b); });
  std::string content;
  for (size_t rank = 0; rank < order.size(); ++rank) {
    const ParallelLine& line = chart.lines[order[rank]];
    std::string path, hover = line.text.label;
    bool joined = false;
    for (size_t i = 0; i < uprights.size(); ++i) {
      hover += fmt::format("{}{} {}", hover.empty() ? "" : ", ", chart.axes[i].axis.label,
                           uprights[i].text(line.values[i]));
      if (!uprights[i].drawable(line.values[i])) {
        joined = false;
        continue;
      }
      path += fmt::format("{}{:.1f} {:.1f}", joined ? "L" : "M", uprights[i].x,
                          uprights[i].place(line.values[i], area));
      joined = true;
    }
    if (path.empty()) continue;
    const double good =
        order.size() > 1 ? static_cast<double>(rank) / static_cast<double>(order.size() - 1) : 1;
    content +=
        marked(fmt::format("<path d=\"{}\" class=\"trial\" style=\"--good:{:.3f}\"", path, good),
               "path", line.text, hover);
  }
  for (const Upright& upright : uprights) content += drawn_upright(upright, area);
  return chart_figure(chart.title, area,
                      fmt::format("{} trials over {} options; stronger lines are better",
                                  chart.lines.size(), chart.axes.size() - 1),
                      content);
}

}  // namespace mase
