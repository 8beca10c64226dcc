// SPDX-License-Identifier: Apache-2.0
#include "mase/report/charts/datapath_chart.h"

#include <fmt/format.h>

#include <algorithm>

#include "mase/report/charts/chart_frame.h"
#include "mase/report/pages/html.h"

namespace mase {

std::string datapath_chart(const std::vector<DatapathLayer>& layers) {
  const std::string title = "Layers from inputs to outputs";
  constexpr double row = 30, bar = 18;
  ChartArea area;
  area.width = 640;
  area.left = 130;
  area.right = 150;
  area.height = area.top + area.bottom + row * static_cast<double>(layers.size());
  std::vector<double> ends = {0};
  double most = 0;
  for (const DatapathLayer& layer : layers) {
    ends.push_back(layer.end);
    most = std::max(most, layer.luts);
  }
  if (layers.empty()) return no_chart(title);
  const Axis x({"levels of logic", AxisKind::linear, NumberText::whole}, ends, area.left,
               area.inner_right());
  std::string content, spoken;
  for (const double tick : x.ticks())
    content += fmt::format(
        "<line class=\"grid\" x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1:.1f}\" y2=\"{2:.1f}\"/>"
        "<text class=\"tick\" x=\"{0:.1f}\" y=\"{3:.1f}\" text-anchor=\"middle\">{4}</text>",
        x.place(tick), area.top, area.inner_bottom(), area.inner_bottom() + 16,
        escaped(x.text(tick)));
  content += fmt::format(
      "<text class=\"tick\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">"
      "levels of logic</text>",
      (area.left + area.inner_right()) / 2, area.height - 8);
  for (size_t i = 0; i < layers.size(); ++i) {
    const DatapathLayer& layer = layers[i];
    const double top = area.top + row * static_cast<double>(i) + (row - bar) / 2;
    const double begin = x.place(layer.begin), end = std::max(x.place(layer.end), begin + 2);
    const std::string cost =
        fmt::format("{:.0f} LUTs{}", layer.luts,
                    layer.bits.empty() ? "" : fmt::format(", {} bits", layer.bits));
    const std::string said =
        fmt::format("{}: levels {:.0f} to {:.0f}, {}", layer.name, layer.begin, layer.end, cost);
    spoken += said + ". ";
    content +=
        fmt::format("<text class=\"tick\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>",
                    area.left - 8, top + bar - 5, escaped(cut_text(layer.name, 18)));
    content += marked(fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" "
                                  "height=\"{:.1f}\" rx=\"3\" fill=\"{}\" fill-opacity=\"{:.2f}\"",
                                  begin, top, end - begin, bar, series_colour(0),
                                  0.25 + 0.75 * (most > 0 ? layer.luts / most : 0)),
                      "rect", {}, said);
    content += fmt::format("<text class=\"tick\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>", end + 6,
                           top + bar - 5, escaped(cost));
  }
  return chart_figure(title, area, spoken, content);
}

}  // namespace mase
