// SPDX-License-Identifier: Apache-2.0
#include "mase/report/text/plot.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "mase/base/error.h"
#include "mase/base/text.h"
#include "mase/report/text/utf8.h"

namespace mase {
namespace {

constexpr std::array<const char*, 6> colours = {"\033[36m", "\033[33m", "\033[32m",
                                                "\033[35m", "\033[34m", "\033[31m"};
constexpr const char* plain = "\033[0m";
constexpr const char* red = "\033[31m";
constexpr std::array<const char*, 6> marks = {"●", "×", "○", "+", "◆", "▪"};
constexpr std::array<const char*, 6> ascii_marks = {"*", "x", "o", "+", "#", "@"};
constexpr std::array<const char*, 9> eighths = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};

int whole_width(const PlotStyle& style) { return std::clamp(style.width, 20, 1000); }
int canvas_height(const PlotStyle& style) { return std::clamp(style.height, 3, 200); }

// A name cut to a number of columns, safe for a terminal, and ASCII where that is asked for.
std::string fitted(const std::string& name, int columns, const PlotStyle& style) {
  const std::string text = printable(valid_utf8(name));
  std::string result;
  int used = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t length = std::max<size_t>(1, utf8_length(std::string_view(text).substr(at)));
    if (used + 1 > columns) {
      while (!result.empty() && (static_cast<uint8_t>(result.back()) & 0xC0) == 0x80)
        result.pop_back();
      if (!result.empty()) result.pop_back();
      return result + (style.ascii ? "~" : "…");
    }
    result += style.ascii && length > 1 ? "?" : text.substr(at, length);
    at += length;
    ++used;
  }
  return result;
}

std::string painted(const std::string& text, const char* colour, const PlotStyle& style) {
  return style.colour ? colour + text + plain : text;
}

void end_line(std::string& line, std::string& out) {
  while (!line.empty() && line.back() == ' ') line.pop_back();
  out += line + "\n";
  line.clear();
}

struct Range {
  double low = INFINITY, high = -INFINITY;
  void add(double value) {
    if (!std::isfinite(value)) return;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  bool empty() const { return low > high; }
  // Widens a range without extent, so that a constant curve runs along the middle.
  void open() {
    if (high > low) return;
    const double margin = low == 0 ? 1 : std::abs(low) * 0.1;
    low -= margin;
    high += margin;
  }
  // 0 at low, 1 at high; never far outside, and the middle where the range has no extent left (the
  // largest and the smallest numbers).
  double place(double value) const {
    const double share = (value / 2 - low / 2) / (high / 2 - low / 2);
    return std::isfinite(share) ? std::clamp(share, -1.0, 2.0) : 0.5;
  }
};

struct Cell {
  uint8_t dots = 0;
  int curve = -1;
};

class Canvas {
 public:
  Canvas(int columns, int rows) : columns_(columns), rows_(rows), cells_(columns * rows) {}

  int dot_columns() const { return columns_ * 2; }
  int dot_rows() const { return rows_ * 4; }

  void dot(int x, int y, int curve) {  // y upwards
    if (x < 0 || y < 0 || x >= dot_columns() || y >= dot_rows()) return;
    static constexpr uint8_t bits[4][2] = {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};
    const int from_top = dot_rows() - 1 - y;
    Cell& cell = cells_[from_top / 4 * columns_ + x / 2];
    cell.dots |= bits[from_top % 4][x % 2];
    cell.curve = curve;
  }

  void line(int x0, int y0, int x1, int y1, int curve) {
    const int steps = std::max({std::abs(x1 - x0), std::abs(y1 - y0), 1});
    for (int i = 0; i <= steps; ++i)
      dot(static_cast<int>(std::lround(x0 + (x1 - x0) * static_cast<double>(i) / steps)),
          static_cast<int>(std::lround(y0 + (y1 - y0) * static_cast<double>(i) / steps)), curve);
  }

  const Cell& at(int column, int row) const { return cells_[row * columns_ + column]; }

 private:
  int columns_, rows_;
  std::vector<Cell> cells_;
};

std::string braille(uint8_t dots) {
  const uint32_t code = 0x2800u + dots;
  return {static_cast<char>(0xE0 | code >> 12), static_cast<char>(0x80 | (code >> 6 & 0x3F)),
          static_cast<char>(0x80 | (code & 0x3F))};
}

std::string cell_text(const Cell& cell, size_t curves, const PlotStyle& style) {
  if (cell.dots == 0) return " ";
  const size_t which = static_cast<size_t>(cell.curve) % colours.size();
  if (style.ascii) return painted(ascii_marks[which], colours[which], style);
  if (curves > 1 && !style.colour) return marks[which];
  return painted(braille(cell.dots), colours[which], style);
}

// Ticks under a canvas: as many of the round numbers as fit without touching.
std::string x_axis(const Range& range, int columns, int margin, const PlotStyle& style,
                   const std::string& label) {
  std::string rule(style.ascii ? "+" : "└"), numbers;
  const std::vector<double> ticks = axis_ticks(range.low, range.high, std::max(2, columns / 14));
  std::vector<bool> marked(static_cast<size_t>(columns), false);
  int used = 0;
  for (double tick : ticks) {
    const int at = std::clamp(static_cast<int>(std::lround(range.place(tick) * (columns - 1))), 0,
                              columns - 1);
    const std::string text = short_number(tick);
    const int begin = std::clamp(at - static_cast<int>(text.size()) / 2, 0,
                                 std::max(0, columns - static_cast<int>(text.size())));
    if (begin < used + (used > 0 ? 1 : 0)) continue;
    numbers += std::string(static_cast<size_t>(begin - used), ' ') + text;
    used = begin + static_cast<int>(text.size());
    marked[static_cast<size_t>(at)] = true;
  }
  for (bool mark : marked) rule += style.ascii ? (mark ? "+" : "-") : (mark ? "┬" : "─");
  std::string out, line = std::string(static_cast<size_t>(margin), ' ') + rule;
  end_line(line, out);
  line = std::string(static_cast<size_t>(margin + 1), ' ') + numbers;
  const std::string name = fitted(label, 24, style);
  if (!name.empty() && used + 2 + display_width(name) <= columns)
    line += std::string(static_cast<size_t>(columns - used - display_width(name)), ' ') + name;
  end_line(line, out);
  return out;
}

std::string nothing(const std::string& title, const PlotStyle& style) {
  const std::string name = fitted(title, whole_width(style), style);
  return (name.empty() ? "" : name + "\n") + "(nothing to plot)\n";
}

}  // namespace

std::string short_number(double number) {
  if (!std::isfinite(number)) return std::isnan(number) ? "nan" : number > 0 ? "inf" : "-inf";
  const double size = std::abs(number);
  if (size != 0 && (size < 1e-3 || size >= 1e9)) return fmt::format("{:.3g}", number);
  if (size >= 1e6) return fmt::format("{:.4g}M", number / 1e6);
  if (size >= 1e4) return fmt::format("{:.4g}k", number / 1e3);
  return fmt::format("{:.4g}", number);
}

std::vector<double> axis_ticks(double low, double high, int count) {
  const double rough = (high / count - low / count);
  if (!(rough > 0) || !std::isfinite(rough)) return {low};
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  double step = 10 * power;
  for (double factor : {1.0, 2.0, 5.0})
    if (factor * power >= rough * 0.999) {
      step = factor * power;
      break;
    }
  std::vector<double> ticks;
  const double first = std::ceil(low / step - 1e-9);
  for (int i = 0; i <= 4 * count; ++i) {
    const double tick = (first + i) * step;
    if (!(tick <= high + step * 1e-9)) break;
    ticks.push_back(std::abs(tick) < step * 1e-6 ? 0 : tick);
  }
  return ticks.empty() ? std::vector<double>{low} : ticks;
}

std::vector<double> log_axis_ticks(double low_power, double high_power) {
  const int first = static_cast<int>(std::floor(low_power));
  const int last = static_cast<int>(std::ceil(high_power));
  const int every = std::max(1, (last - first + 6) / 7);
  std::vector<double> ticks;
  for (int power = first; power <= last; power += every)
    for (const double factor : {1.0, 2.0, 5.0}) {
      if (factor > 1 && high_power - low_power > 2) continue;
      const double tick = factor * std::pow(10.0, power), at = std::log10(tick);
      if (at >= low_power - 1e-9 && at <= high_power + 1e-9) ticks.push_back(tick);
    }
  return ticks;
}

std::string plot_curves(const CurvePlot& plot, const PlotStyle& style) {
  Range x, y;
  bool positive = true;
  for (const Curve& curve : plot.curves) {
    MASE_CHECK(curve.x.size() == curve.y.size(), "curve '{}': {} and {} points", curve.name,
               curve.x.size(), curve.y.size());
    for (size_t i = 0; i < curve.y.size(); ++i) {
      if (!std::isfinite(curve.y[i]) || !std::isfinite(curve.x[i])) continue;
      x.add(curve.x[i]);
      y.add(curve.y[i]);
      positive = positive && curve.y[i] > 0;
    }
  }
  if (y.empty()) return nothing(plot.title, style);
  const bool logarithmic = plot.log_y && positive;
  const auto scaled = [&](double value) { return logarithmic ? std::log10(value) : value; };
  y = {scaled(y.low), scaled(y.high)};
  x.open();
  y.open();

  const int rows = canvas_height(style);
  std::vector<std::string> labels(static_cast<size_t>(rows));
  int margin = 0;
  for (double tick : logarithmic ? log_axis_ticks(y.low, y.high)
                                 : axis_ticks(y.low, y.high, std::max(2, rows / 3))) {
    const int row = rows - 1 - static_cast<int>(std::lround(y.place(scaled(tick)) * (rows - 1)));
    std::string& label = labels[static_cast<size_t>(std::clamp(row, 0, rows - 1))];
    label = short_number(tick);
    margin = std::max(margin, static_cast<int>(label.size()));
  }
  margin += 1;
  const int columns = std::max(8, whole_width(style) - margin - 1);

  Canvas canvas(columns, rows);
  for (size_t which = 0; which < plot.curves.size(); ++which) {
    const Curve curve = thin(plot.curves[which], static_cast<size_t>(columns) * 10);
    bool joined = false;
    int last_x = 0, last_y = 0;
    for (size_t i = 0; i < curve.y.size(); ++i) {
      if (!std::isfinite(curve.y[i]) || !std::isfinite(curve.x[i])) {
        joined = false;
        continue;
      }
      const int at_x =
          static_cast<int>(std::lround(x.place(curve.x[i]) * (canvas.dot_columns() - 1)));
      const int at_y =
          static_cast<int>(std::lround(y.place(scaled(curve.y[i])) * (canvas.dot_rows() - 1)));
      canvas.line(joined ? last_x : at_x, joined ? last_y : at_y, at_x, at_y,
                  static_cast<int>(which));
      joined = true;
      last_x = at_x;
      last_y = at_y;
    }
  }

  std::string out, line;
  const std::string title = fitted(plot.title, whole_width(style), style);
  if (!title.empty()) out += title + (logarithmic ? " (log)" : "") + "\n";
  for (int row = 0; row < rows; ++row) {
    const std::string& label = labels[static_cast<size_t>(row)];
    const char* axis = style.ascii ? (label.empty() ? "|" : "+") : (label.empty() ? "│" : "┤");
    line = pad_left(label, margin) + axis;
    for (int column = 0; column < columns; ++column)
      line += cell_text(canvas.at(column, row), plot.curves.size(), style);
    end_line(line, out);
  }
  out += x_axis(x, columns, margin, style, plot.x_label);
  if (plot.curves.size() > 1) {
    for (size_t which = 0; which < plot.curves.size(); ++which) {
      const size_t kind = which % colours.size();
      const std::string mark = style.ascii    ? ascii_marks[kind]
                               : style.colour ? std::string("━━")
                                              : std::string(marks[kind]);
      out += std::string(static_cast<size_t>(margin + 1), ' ') +
             painted(mark, colours[kind], style) + " " +
             fitted(plot.curves[which].name, std::max(8, columns - 4), style) + "\n";
    }
  }
  return out;
}

HistogramPlot histogram_of(const std::vector<double>& values, size_t buckets) {
  HistogramPlot plot;
  Range range;
  for (double value : values) range.add(value);
  if (range.empty() || buckets == 0) return plot;
  range.open();
  plot.counts.resize(buckets);
  for (size_t i = 0; i <= buckets; ++i) {
    const double t = static_cast<double>(i) / static_cast<double>(buckets);
    plot.edges.push_back(range.low * (1 - t) + range.high * t);
  }
  for (double value : values) {
    if (!std::isfinite(value)) continue;
    const double share = std::clamp(range.place(value), 0.0, 1.0);
    const auto place = static_cast<size_t>(share * static_cast<double>(buckets));
    plot.counts[std::min(buckets - 1, place)] += 1;
  }
  return plot;
}

std::string plot_histogram(const HistogramPlot& plot, const PlotStyle& style) {
  if (plot.counts.empty() || plot.edges.size() != plot.counts.size() + 1)
    return nothing(plot.title, style);
  const int columns = std::max(8, whole_width(style) - 2);
  const int rows = canvas_height(style);
  // Some of a format's unused range is shown, but a wide one never squashes the data.
  Range range{plot.edges.front(), plot.edges.back()};
  const double margin = (range.high / 2 - range.low / 2);
  if (plot.lowest && std::isfinite(*plot.lowest) && *plot.lowest < range.low)
    range.low = std::max(*plot.lowest, range.low - margin);
  if (plot.largest && std::isfinite(*plot.largest) && *plot.largest > range.high)
    range.high = std::min(*plot.largest, range.high + margin);
  range.open();

  // Counts are spread over the columns they cover; the height is a density, so uneven buckets
  // look right too.
  std::vector<double> density(static_cast<size_t>(columns), 0.0);
  double total = 0, saturated = 0;
  for (size_t i = 0; i < plot.counts.size(); ++i) {
    const double count = std::isfinite(plot.counts[i]) ? std::max(0.0, plot.counts[i]) : 0;
    total += count;
    const double middle = plot.edges[i] / 2 + plot.edges[i + 1] / 2;
    if ((plot.lowest && middle < *plot.lowest) || (plot.largest && middle > *plot.largest))
      saturated += count;
    const double begin = range.place(plot.edges[i]) * columns;
    const double end = std::max(begin + 1e-9, range.place(plot.edges[i + 1]) * columns);
    const int first = std::clamp(static_cast<int>(begin), 0, columns - 1);
    const int last = std::clamp(static_cast<int>(std::ceil(end)) - 1, first, columns - 1);
    for (int c = first; c <= last; ++c) {
      const double covered = std::min(end, c + 1.0) - std::max(begin, static_cast<double>(c));
      density[static_cast<size_t>(c)] +=
          count * (first == last ? 1 : std::max(0.0, covered) / (end - begin));
    }
  }
  const double peak = *std::max_element(density.begin(), density.end());
  if (!(peak > 0)) return nothing(plot.title, style);
  const auto outside = [&](int column) {
    const double middle = range.low + (range.high - range.low) * (column + 0.5) / columns;
    return (plot.lowest && middle < *plot.lowest) || (plot.largest && middle > *plot.largest);
  };

  std::string out, line;
  std::string title = plot.title;
  if ((plot.lowest || plot.largest) && total > 0)
    title +=
        fmt::format("{}saturated {:.3g} %", title.empty() ? "" : "  ", 100 * saturated / total);
  title = fitted(title, whole_width(style), style);
  if (!title.empty()) out += title + "\n";
  for (int row = rows - 1; row >= 0; --row) {
    line = style.ascii ? "|" : "│";
    for (int c = 0; c < columns; ++c) {
      const double height = density[static_cast<size_t>(c)] / peak * rows - row;
      int level = static_cast<int>(std::lround(std::clamp(height, 0.0, 1.0) * 8));
      if (row == 0 && density[static_cast<size_t>(c)] > 0) level = std::max(level, 1);
      if (level == 0) {
        line += " ";
      } else if (outside(c)) {
        line += painted(style.ascii ? "!" : "░", red, style);
      } else {
        line +=
            painted(style.ascii ? (level >= 4 ? "#" : ".") : eighths[static_cast<size_t>(level)],
                    colours[0], style);
      }
    }
    end_line(line, out);
  }
  if (plot.lowest || plot.largest) {
    line = " ";
    for (int c = 0; c < columns; ++c)
      line += outside(c) ? " " : style.ascii ? "=" : painted("━", colours[2], style);
    const bool anything = line.find(style.ascii ? "=" : "━") != std::string::npos;
    end_line(line, out);
    if (!anything) out.pop_back();
  }
  out += x_axis(range, columns, 0, style, "");
  return out;
}

std::string plot_bars(const std::string& title, const std::vector<Bar>& bars,
                      const PlotStyle& style) {
  if (bars.empty()) return nothing(title, style);
  const int width = whole_width(style);
  int label_width = 0, text_width = 0;
  double peak = 0;
  std::vector<std::string> texts;
  for (const Bar& bar : bars) {
    texts.push_back(fitted(bar.text.empty() ? short_number(bar.value) : bar.text, 24, style));
    label_width =
        std::max(label_width, display_width(fitted(bar.label, std::max(8, width / 3), style)));
    text_width = std::max(text_width, display_width(texts.back()));
    if (std::isfinite(bar.value)) peak = std::max(peak, std::abs(bar.value));
  }
  const int columns = std::max(4, width - label_width - text_width - 3);
  constexpr std::array<const char*, 8> parts = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  std::string out, line;
  const std::string heading = fitted(title, width, style);
  if (!heading.empty()) out += heading + "\n";
  for (size_t i = 0; i < bars.size(); ++i) {
    const double value = bars[i].value;
    const double share = peak > 0 && std::isfinite(value) ? std::abs(value) / peak : 0;
    const int eighth = static_cast<int>(std::lround(share * columns * 8));
    std::string bar;
    if (style.ascii) {
      bar = std::string(static_cast<size_t>((eighth + 4) / 8), value < 0 ? '-' : '#');
    } else {
      for (int c = 0; c < eighth / 8; ++c) bar += value < 0 ? "▒" : "█";
      if (value >= 0) bar += parts[static_cast<size_t>(eighth % 8)];
    }
    line = pad_right(fitted(bars[i].label, std::max(8, width / 3), style), label_width) + " " +
           painted(bar, value < 0 ? red : colours[0], style) + " " + texts[i];
    end_line(line, out);
  }
  return out;
}

}  // namespace mase
