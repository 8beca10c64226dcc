// SPDX-License-Identifier: Apache-2.0
// Charts for pages, from plain data to one <figure> of HTML with an SVG in it. They need no script:
// hover texts are titles, points and lines are links, and a table or a sentence beside each picture
// says the same to those who do not see it. Several series share one palette that does not repeat.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "mase/report/charts/axis.h"

namespace mase {

// What is written to the reader of a point, line or cell.
struct ChartText {
  std::string label = {};  // drawn beside it where there is room
  std::string hover = {};  // shown under the pointer and read aloud; made from the numbers if empty
  std::string link = {};   // where a click leads; only addresses within the server or of the web
};

struct ScatterPoint {
  double x = 0, y = 0;
  std::string series = {};  // points of one series have one colour
  ChartText text = {};
};

// Which way is better, for the front of points that no other is better than in both.
enum class Better { neither, lower, higher };

struct ScatterChart {
  std::string title;
  AxisOptions x, y;
  std::vector<ScatterPoint> points;
  Better better_x = Better::neither, better_y = Better::neither;  // both set: the front is drawn
};

std::string scatter_chart(const ScatterChart& chart);

// Indices of the points that no other one is at least as good as in both and better in one, in the
// order of x. Points that are not finite are on no front.
std::vector<size_t> pareto_front(const std::vector<ScatterPoint>& points, Better better_x,
                                 Better better_y);

struct HeatCell {
  std::optional<double> value;        // none: an empty cell
  std::optional<double> deviation{};  // over seeds; nothing else is written behind a +-
  int64_t count = 0;                  // how many runs it stands for; 0: not said
  ChartText text = {};                // its label says why a cell is empty
};

struct HeatMap {
  std::string title, row_name, column_name;
  std::vector<std::string> rows, columns;
  std::vector<std::vector<HeatCell>> cells;  // [row][column]
  bool higher_is_better = true;
  NumberText number = NumberText::plain;
};

std::string heat_map(const HeatMap& map);

struct ParallelAxis {
  AxisOptions axis;
  std::vector<std::string> choices = {};  // set: values are indices of these words
};

struct ParallelLine {
  std::vector<double> values;  // one for each axis; NaN where the line has none
  ChartText text = {};
};

// One line for each trial, coloured by its value on the last axis.
struct ParallelChart {
  std::string title;
  std::vector<ParallelAxis> axes;
  std::vector<ParallelLine> lines;
  bool higher_is_better = true;  // on the last axis: better lines are drawn last and stronger
};

std::string parallel_chart(const ParallelChart& chart);

struct BandSeries {
  std::string name;
  std::vector<double> x, y;
  std::vector<double> low = {}, high = {};  // the band; as long as y, or empty
  ChartText text = {};
  std::string colour = {};  // the palette's next if empty
  std::string run = {};     // the row of the table of runs it belongs to
  bool faint = false;       // behind the others, without a name at its end
  bool dashed = false;
  bool steps = false;  // a value holds until the next one
};

struct BandChart {
  std::string title;
  AxisOptions x, y;
  std::vector<BandSeries> series;
  std::string id = {};
  size_t most_points = 1500;  // of a line: more than the picture has pixels
  bool named = true;          // at the ends of the lines
};

std::string band_chart(const BandChart& chart);

// Colour number i of the palette, as CSS.
std::string series_colour(size_t i);

}  // namespace mase
