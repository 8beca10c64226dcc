// SPDX-License-Identifier: Apache-2.0
// Lines with bands (a mean and its spread, a median and its quartiles), named at their ends.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "mase/base/error.h"
#include "mase/report/chart_frame.h"
#include "mase/report/charts.h"
#include "mase/report/curve.h"
#include "mase/report/html.h"

namespace mase {
namespace {

constexpr size_t most_drawn = 1500;  // of a line: more than the picture has pixels

std::string line_path(const BandSeries& series, const Axis& x, const Axis& y) {
  std::string path;
  bool joined = false;
  for (const size_t i : thin_indices(series.y, most_drawn)) {
    const bool here = x.drawable(series.x[i]) && y.drawable(series.y[i]);
    if (here)
      path += fmt::format("{}{:.1f} {:.1f}", joined ? "L" : "M", x.place(series.x[i]),
                          y.place(series.y[i]));
    joined = here;
  }
  return path;
}

// One closed shape for each stretch that has both edges.
std::string band_path(const BandSeries& series, const Axis& x, const Axis& y) {
  if (series.low.empty()) return "";
  std::string path;
  std::vector<size_t> stretch;
  const auto close = [&] {
    for (size_t k = 0; k < stretch.size(); ++k)
      path += fmt::format("{}{:.1f} {:.1f}", k ? "L" : "M", x.place(series.x[stretch[k]]),
                          y.place(series.high[stretch[k]]));
    for (size_t k = stretch.size(); k-- > 0;)
      path += fmt::format("L{:.1f} {:.1f}", x.place(series.x[stretch[k]]),
                          y.place(series.low[stretch[k]]));
    if (!stretch.empty()) path += "Z";
    stretch.clear();
  };
  for (const size_t i : thin_indices(series.y, most_drawn)) {
    if (x.drawable(series.x[i]) && y.drawable(series.low[i]) && y.drawable(series.high[i]))
      stretch.push_back(i);
    else
      close();
  }
  close();
  return path;
}

}  // namespace

std::string band_chart(const BandChart& chart) {
  std::vector<double> xs, ys;
  for (const BandSeries& series : chart.series) {
    MASE_CHECK(series.x.size() == series.y.size() && series.low.size() == series.high.size() &&
                   (series.low.empty() || series.low.size() == series.y.size()),
               "series '{}' is ragged", series.name);
    xs.insert(xs.end(), series.x.begin(), series.x.end());
    for (const auto* values : {&series.y, &series.low, &series.high})
      ys.insert(ys.end(), values->begin(), values->end());
  }
  ChartArea area;
  area.right = chart.series.size() > 1 ? 140 : 24;
  const Axis x(chart.x, xs, area.left, area.inner_right());
  const Axis y(chart.y, ys, area.inner_bottom(), area.top);
  std::string content = drawn_axes(area, x, y, chart.x.label, chart.y.label), spoken;
  std::vector<EndName> names;
  for (size_t i = 0; i < chart.series.size(); ++i) {
    const BandSeries& series = chart.series[i];
    const std::string path = line_path(series, x, y), colour = series_colour(i);
    if (path.empty()) continue;
    const std::string band = band_path(series, x, y);
    if (!band.empty())
      content += fmt::format("<path d=\"{}\" class=\"band\" style=\"color:{}\"/>", band, colour);
    content += marked(fmt::format("<path d=\"{}\" class=\"line\" style=\"color:{}\"", path, colour),
                      "path", series.text, series.name);
    double last = NAN;
    for (size_t k = 0; k < series.y.size(); ++k)
      if (y.drawable(series.y[k]) && x.drawable(series.x[k])) last = series.y[k];
    names.push_back(
        {series.text.label.empty() ? series.name : series.text.label, colour, y.place(last)});
    spoken += fmt::format("{} ends at {}. ", series.name, y.exact(last));
  }
  if (names.empty()) return no_chart(chart.title);
  if (chart.series.size() > 1)
    content += end_names(names, area.inner_right() + 6, area.top, area.inner_bottom());
  return chart_figure(chart.title, area, spoken, content);
}

}  // namespace mase
