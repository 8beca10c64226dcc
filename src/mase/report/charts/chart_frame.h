// SPDX-License-Identifier: Apache-2.0
// What the charts share: the picture's frame with its axes, marks with a hover text and a link, and
// names that keep apart from each other.
#pragma once

#include <string>
#include <vector>

#include "mase/report/charts/axis.h"
#include "mase/report/charts/charts.h"

namespace mase {

struct ChartArea {
  double width = 480, height = 300;
  double left = 72, right = 16, top = 12, bottom = 46;
  double inner_right() const { return width - right; }
  double inner_bottom() const { return height - bottom; }
};

// Grid lines, tick texts and axis labels.
std::string drawn_axes(const ChartArea& area, const Axis& x, const Axis& y,
                       const std::string& x_label, const std::string& y_label);

// A figure with its heading; `spoken` is what the picture says, for those who do not see it.
std::string chart_figure(const std::string& title, const ChartArea& area, const std::string& spoken,
                         const std::string& content, const std::string& below = "",
                         const std::string& axes = "", const std::string& id = "");

// Where the axes lie, for zooming; and what a zoom moves.
std::string zoom_axes(const Axis& x, const Axis& y);
std::string drawn_marks(const std::string& marks);

std::string no_chart(const std::string& title);  // in the place of one without data

// An element with its hover text, within a link where there is one.
std::string marked(const std::string& element_without_end, const std::string& element_name,
                   const ChartText& text, const std::string& hover);

struct EndName {
  std::string text, colour;
  double y = 0;
};

// Names at x, moved up and down until they are `gap` apart.
std::string end_names(std::vector<EndName> names, double x, double top, double bottom);

std::string cut_text(const std::string& text, size_t letters);

}  // namespace mase
