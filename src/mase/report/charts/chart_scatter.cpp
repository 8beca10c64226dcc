// SPDX-License-Identifier: Apache-2.0
// A cloud of points with, where it is known which way is better, the front of the best.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "mase/base/text.h"
#include "mase/report/charts/chart_frame.h"
#include "mase/report/charts/charts.h"
#include "mase/report/pages/html.h"

namespace mase {
namespace {

// Larger is better.
double goodness(double value, Better better) { return better == Better::lower ? -value : value; }

std::string front_line(const ScatterChart& chart, const std::vector<size_t>& front, const Axis& x,
                       const Axis& y) {
  std::string path;
  double last = 0, before = 0;
  for (const size_t i : front) {
    const ScatterPoint& point = chart.points[i];
    if (!x.drawable(point.x) || !y.drawable(point.y)) continue;
    // A step: between two points of the front, nothing better than the worse of both was found.
    const double at_x = x.place(point.x), at_y = y.place(point.y);
    if (path.empty())
      path = fmt::format("M{:.1f} {:.1f}", at_x, at_y);
    else if (chart.better_x == Better::lower)
      path += fmt::format("L{:.1f} {:.1f}L{:.1f} {:.1f}", at_x, last, at_x, at_y);
    else
      path += fmt::format("L{:.1f} {:.1f}L{:.1f} {:.1f}", before, at_y, at_x, at_y);
    last = at_y;
    before = at_x;
  }
  return path.empty() ? "" : "<path class=\"front\" d=\"" + path + "\"/>";
}

}  // namespace

std::vector<size_t> pareto_front(const std::vector<ScatterPoint>& points, Better better_x,
                                 Better better_y) {
  std::vector<size_t> order;
  for (size_t i = 0; i < points.size(); ++i)
    if (std::isfinite(points[i].x) && std::isfinite(points[i].y)) order.push_back(i);
  const auto key = [&](size_t i) {
    return std::pair(goodness(points[i].x, better_x), goodness(points[i].y, better_y));
  };
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return key(a) > key(b); });
  std::vector<size_t> front;
  for (const size_t i : order) {
    // Best x first: what comes later must be better in y, or be the same point.
    if (front.empty() || key(i).second > key(front.back()).second || key(i) == key(front.back()))
      front.push_back(i);
  }
  std::stable_sort(front.begin(), front.end(),
                   [&](size_t a, size_t b) { return points[a].x < points[b].x; });
  return front;
}

std::string scatter_chart(const ScatterChart& chart) {
  std::vector<double> xs, ys;
  std::map<std::string, size_t> colours;
  std::vector<std::string> names;
  for (const ScatterPoint& point : chart.points) {
    xs.push_back(point.x);
    ys.push_back(point.y);
    if (colours.try_emplace(point.series, names.size()).second) names.push_back(point.series);
  }
  ChartArea area;
  const Axis x(chart.x, xs, area.left, area.inner_right());
  const Axis y(chart.y, ys, area.inner_bottom(), area.top);
  const bool with_front = chart.better_x != Better::neither && chart.better_y != Better::neither;
  std::vector<size_t> front;
  if (with_front) front = pareto_front(chart.points, chart.better_x, chart.better_y);
  std::vector<bool> on_front(chart.points.size(), false);
  for (const size_t i : front) on_front[i] = true;

  std::string content = drawn_axes(area, x, y, chart.x.label, chart.y.label);
  std::string marks = front_line(chart, front, x, y);
  size_t drawn = 0;
  for (size_t i = 0; i < chart.points.size(); ++i) {
    const ScatterPoint& point = chart.points[i];
    if (!x.drawable(point.x) || !y.drawable(point.y)) continue;
    ++drawn;
    const std::string hover =
        fmt::format("{}{}{} {}, {} {}", point.text.label, point.text.label.empty() ? "" : ": ",
                    chart.x.label, x.exact(point.x), chart.y.label, y.exact(point.y));
    marks += marked(
        fmt::format(
            "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\" class=\"dot{}\" style=\"color:{}\" "
            "data-x=\"{:.7g}\" data-y=\"{:.7g}\" data-name=\"{}\"",
            x.place(point.x), y.place(point.y), on_front[i] ? 5.5 : 4,
            with_front && !on_front[i] ? " behind" : "", series_colour(colours[point.series]),
            point.x, point.y, escaped(point.text.label.empty() ? point.series : point.text.label)),
        "circle", point.text, hover);
  }
  if (drawn == 0) return no_chart(chart.title);
  // Names of the front, on the side where no better point is, as long as they do not run into each
  // other.
  const bool to_the_left = chart.better_x == Better::lower,
             above = chart.better_y == Better::higher;
  double taken = to_the_left ? -1e9 : 1e9;
  for (size_t k = 0; k < front.size(); ++k) {
    const ScatterPoint& point = chart.points[front[to_the_left ? k : front.size() - 1 - k]];
    if (!x.drawable(point.x) || !y.drawable(point.y) || point.text.label.empty()) continue;
    const std::string name = cut_text(point.text.label, 18);
    const double width = 6.2 * display_width(name), at = x.place(point.x);
    const double begin = to_the_left ? at - 8 - width : at + 8;
    const bool fits = begin > area.left && begin + width < area.width;
    if (!fits || (to_the_left ? begin < taken : begin + width > taken)) continue;
    taken = to_the_left ? begin + width : begin;
    marks += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" class=\"tick halo\">{}</text>", begin,
                         y.place(point.y) + (above ? -6 : 15), escaped(name));
  }
  std::string below;
  if (names.size() > 1) {
    below = "<ul class=\"legend inline\">";
    for (size_t i = 0; i < names.size(); ++i)
      below += fmt::format("<li><span class=\"swatch\" style=\"background:{}\"></span>{}</li>",
                           series_colour(i), escaped(names[i]));
    below += "</ul>";
  }
  const size_t left_out = chart.points.size() - drawn;
  if (left_out > 0)
    below += fmt::format("<p class=\"note\">{} points without finite values are not drawn.</p>",
                         left_out);
  return chart_figure(
      chart.title, area,
      fmt::format(
          "{} points{}", drawn,
          with_front ? fmt::format(", {} of them on the front", front.size()) : std::string()),
      content + drawn_marks(marks), below, zoom_axes(x, y));
}

}  // namespace mase
