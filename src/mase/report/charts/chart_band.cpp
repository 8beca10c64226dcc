// SPDX-License-Identifier: Apache-2.0
// Lines with bands (a mean and its spread, a median and its quartiles), named at their ends.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "mase/base/error.h"
#include "mase/report/charts/chart_frame.h"
#include "mase/report/charts/charts.h"
#include "mase/report/charts/curve.h"
#include "mase/report/pages/html.h"

namespace mase {
namespace {

constexpr size_t most_names = 18;  // as many as stand below each other
constexpr size_t fewest_with_values =
    100;  // thinner lines are outlines: no values under the pointer

// The line as a path, and its points as texts for those who hover or download.
struct DrawnLine {
  std::string path, x, y;
};

DrawnLine drawn_line(const BandSeries& series, const Axis& x, const Axis& y, size_t most) {
  DrawnLine line;
  bool joined = false;
  double before = 0;
  const auto add = [&](double at_x, double at_y, double value_x, double value_y) {
    line.path += fmt::format("{}{:.1f} {:.1f}", joined ? "L" : "M", at_x, at_y);
    line.x += fmt::format("{}{:.7g}", line.x.empty() ? "" : " ", value_x);
    line.y += fmt::format("{}{:.7g}", line.y.empty() ? "" : " ", value_y);
    joined = true;
  };
  for (const size_t i : thin_indices(series.y, most)) {
    const bool here = x.drawable(series.x[i]) && y.drawable(series.y[i]);
    if (here) {
      const double at = x.place(series.x[i]);
      if (series.steps && joined) add(at, y.place(before), series.x[i], before);
      add(at, y.place(series.y[i]), series.x[i], series.y[i]);
      before = series.y[i];
    }
    joined = here;
  }
  if (line.path.find('L') == std::string::npos && !line.path.empty())
    line.path += "Z";  // a point alone is a dot
  return line;
}

// One closed shape for each stretch that has both edges.
std::string band_path(const BandSeries& series, const Axis& x, const Axis& y, size_t most) {
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
  for (const size_t i : thin_indices(series.y, most)) {
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
  const auto has_name = [&](const BandSeries& one) { return chart.named && !one.faint; };
  const bool named = std::count_if(chart.series.begin(), chart.series.end(), has_name) > 1;
  ChartArea area;
  if (named) area.right = 124;
  const Axis x(chart.x, xs, area.left, area.inner_right());
  const Axis y(chart.y, ys, area.inner_bottom(), area.top);
  std::string marks, spoken;
  std::vector<EndName> names;
  size_t drawn = 0;
  for (size_t i = 0; i < chart.series.size(); ++i) {
    const BandSeries& series = chart.series[i];
    const std::string colour = series.colour.empty() ? series_colour(i) : series.colour;
    const DrawnLine line = drawn_line(series, x, y, chart.most_points);
    if (line.path.empty()) continue;
    ++drawn;
    const std::string band = band_path(series, x, y, chart.most_points);
    const std::string run =
        series.run.empty() ? "" : fmt::format(" data-run=\"{}\"", escaped(series.run));
    if (!band.empty())
      marks +=
          fmt::format("<path d=\"{}\" class=\"band\" style=\"color:{}\"{}/>", band, colour, run);
    const std::string points = fmt::format(" data-x=\"{}\" data-y=\"{}\"", line.x, line.y);
    marks +=
        marked(fmt::format("<path d=\"{}\" class=\"line{}{}\" style=\"color:{}\"{}{}", line.path,
                           series.faint ? " faint" : "", series.dashed ? " dashed" : "", colour,
                           run, chart.most_points >= fewest_with_values ? points : ""),
               "path", series.text, series.name);
    double last = NAN;
    for (size_t k = 0; k < series.y.size(); ++k)
      if (y.drawable(series.y[k]) && x.drawable(series.x[k])) last = series.y[k];
    if (has_name(series))
      names.push_back(
          {series.text.label.empty() ? series.name : series.text.label, colour, y.place(last)});
    spoken += fmt::format("{} ends at {}. ", series.name, y.exact(last));
  }
  if (drawn == 0) return no_chart(chart.title);
  std::string content = drawn_axes(area, x, y, chart.x.label, chart.y.label) + drawn_marks(marks);
  if (named && names.size() <= most_names)
    content += end_names(names, area.inner_right() + 6, area.top, area.inner_bottom());
  if (chart.series.size() > most_names) spoken = fmt::format("{} lines", drawn);
  return chart_figure(chart.title, area, spoken, content, "", zoom_axes(x, y), chart.id);
}

}  // namespace mase
