// SPDX-License-Identifier: Apache-2.0
// Plots as text: curves on a Braille canvas, histograms and bars in block characters, everything in
// plain ASCII on request. Pure functions from data to text; who prints decides width and colour.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "mase/report/charts/curve.h"

namespace mase {

struct PlotStyle {
  int width = 80;   // columns of the whole plot; below 20 counts as 20
  int height = 12;  // rows of the canvas
  bool ascii = false;
  bool colour = false;  // ANSI colours
};

struct CurvePlot {
  std::string title = {};
  std::string x_label = {};
  std::vector<Curve> curves = {};
  bool log_y = false;  // curves with values <= 0 fall back to a linear axis
};

// Curves share one canvas. Several curves are told apart by colour, or by mark where there is none.
std::string plot_curves(const CurvePlot& plot, const PlotStyle& style);

struct HistogramPlot {
  std::string title = {};
  std::vector<double> edges = {};  // one more than counts, ascending
  std::vector<double> counts = {};
  // What a number format can represent: columns outside are drawn as saturated.
  std::optional<double> lowest = {}, largest = {};
};

std::string plot_histogram(const HistogramPlot& plot, const PlotStyle& style);

// Equal buckets over the finite values; none at all gives an empty plot.
HistogramPlot histogram_of(const std::vector<double>& values, size_t buckets = 60);

struct Bar {
  std::string label;
  double value = 0;
  std::string text = {};  // shown behind the bar; the value if empty
};

// Horizontal bars from zero, labels to the left.
std::string plot_bars(const std::string& title, const std::vector<Bar>& bars,
                      const PlotStyle& style);

// About `count` round numbers inside [low, high], as axes want them.
std::vector<double> axis_ticks(double low, double high, int count);
// The same between two powers of ten: 1, 10, 100, with 2 and 5 between where there are few.
std::vector<double> log_axis_ticks(double low_power, double high_power);
std::string short_number(double number);  // 0.05, 1.2e-05, 12,000 -> "12k"

}  // namespace mase
