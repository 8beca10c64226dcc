// SPDX-License-Identifier: Apache-2.0
#include "mase/report/pages/search_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include "mase/base/figure.h"
#include "mase/base/text.h"
#include "mase/report/charts/charts.h"
#include "mase/report/pages/html.h"

namespace mase {
namespace {

constexpr size_t most_axes = 14, most_lines = 400, most_heat_maps = 6;

struct TrialRow {
  int64_t number = 0;
  std::vector<double> values;   // objectives
  std::vector<Value> settings;  // one for each parameter; null where it does not exist
  bool best = false;
};

struct Objective {
  std::string name;
  bool maximise = false, percent = false;
  NumberText text() const { return percent ? NumberText::percent : NumberText::plain; }
  Better better() const { return maximise ? Better::higher : Better::lower; }
  bool is_better(double a, double b) const { return maximise ? a > b : a < b; }
};

// The record as the charts need it; what does not fit is left out, for the file may be anybody's.
struct Record {
  std::vector<Objective> objectives;
  std::vector<std::string> parameters;
  std::vector<TrialRow> trials;

  explicit Record(const Value& given) {
    if (!given.is_dict()) return;
    for (const Value& one : items(given["objectives"]))
      if (one.is_dict() && one["name"].is_string())
        objectives.push_back({one["name"].as_string(),
                              one["maximise"].is_bool() && one["maximise"].as_bool(),
                              one["percent"].is_bool() && one["percent"].as_bool()});
    for (const Value& one : items(given["parameters"]))
      if (one.is_string()) parameters.push_back(one.as_string());
    std::vector<int64_t> best;
    for (const Value& one : items(given["best"]))
      if (one.is_int()) best.push_back(one.as_int());
    std::sort(best.begin(), best.end());
    for (const Value& one : items(given["trials"])) {
      if (!one.is_dict() || !one["number"].is_int()) continue;
      TrialRow row;
      row.number = one["number"].as_int();
      for (const Value& value : items(one["values"]))
        row.values.push_back(value.is_number() ? value.as_double() : std::nan(""));
      for (const Value& value : items(one["settings"])) row.settings.push_back(value);
      row.best = std::binary_search(best.begin(), best.end(), row.number);
      if (row.values.size() == objectives.size() && row.settings.size() == parameters.size())
        trials.push_back(std::move(row));
    }
  }

  static const List& items(const Value& value) {
    static const List none;
    return value.is_list() ? value.as_list() : none;
  }
};

std::string value_text(const Value& value) {
  if (value.is_null()) return "–";
  return value.is_string() ? value.as_string() : python_repr(value);
}

std::string configuration_text(const Record& record, const TrialRow& row) {
  std::vector<std::string> parts;
  for (size_t p = 0; p < row.settings.size(); ++p)
    if (!row.settings[p].is_null())
      parts.push_back(record.parameters[p] + " = " + value_text(row.settings[p]));
  return join(parts, ", ");
}

std::string trial_id(int64_t number) { return fmt::format("trial-{}", number); }

PagePart progress_part(const Value& given, const Record& record) {
  std::string html;
  const List& curves = Record::items(given["best_so_far"]);
  for (size_t k = 0; k < record.objectives.size() && k < curves.size(); ++k) {
    BandChart chart;
    const Objective& objective = record.objectives[k];
    chart.title = "Best " + objective.name + " so far";
    chart.x = {"trials", AxisKind::linear, NumberText::whole};
    chart.y = {objective.name, AxisKind::linear, objective.text()};
    BandSeries series{value_text(given["sampler"]), {}, {}};
    for (const Value& x : Record::items(curves[k]["trial"]))
      series.x.push_back(x.is_number() ? x.as_double() + 1 : std::nan(""));
    for (const Value& y : Record::items(curves[k]["value"]))
      series.y.push_back(y.is_number() ? y.as_double() : std::nan(""));
    series.y.resize(series.x.size(), std::nan(""));
    series.steps = true;
    chart.series = {std::move(series)};
    html += band_chart(chart);
  }
  return {"progress", "Best so far", "<div class=\"charts\">" + html + "</div>"};
}

std::optional<PagePart> front_part(const Record& record) {
  if (record.objectives.size() < 2) return {};
  std::string html;
  for (size_t k = 1; k < record.objectives.size(); ++k) {
    const Objective &up = record.objectives[0], &along = record.objectives[k];
    ScatterChart chart;
    chart.title = up.name + " against " + along.name;
    chart.x = {along.name, AxisKind::automatic, along.text()};
    chart.y = {up.name, AxisKind::linear, up.text()};
    // A third objective has its say in what is best: then no line between two of them is a front.
    if (record.objectives.size() == 2) {
      chart.better_x = along.better();
      chart.better_y = up.better();
    }
    // Groups have their colours in the order in which they appear: the same on every page.
    for (const bool best : {false, true})
      for (const TrialRow& row : record.trials) {
        if (row.best != best) continue;
        ScatterPoint point{row.values[k], row.values[0], best ? "best trials" : "trials", {}};
        point.text.hover =
            fmt::format("trial {}: {} {:.6g}, {} {:.6g}; {}", row.number, up.name, row.values[0],
                        along.name, row.values[k], configuration_text(record, row));
        if (best) point.text.link = "#" + trial_id(row.number);
        chart.points.push_back(std::move(point));
      }
    html += scatter_chart(chart);
  }
  return PagePart{"front", "Front", "<div class=\"charts\">" + html + "</div>"};
}

// Values of one parameter in the order of the numbers they are.
std::vector<Value> sorted_values(const Record& record, size_t parameter) {
  std::vector<Value> values;
  for (const TrialRow& row : record.trials) {
    const Value& value = row.settings[parameter];
    if (!value.is_null() && std::find(values.begin(), values.end(), value) == values.end())
      values.push_back(value);
    if (values.size() > 64) break;
  }
  std::sort(values.begin(), values.end(), [](const Value& a, const Value& b) {
    if (a.is_number() && b.is_number()) return a.as_double() < b.as_double();
    return value_text(a) < value_text(b);
  });
  return values;
}

// The best value of the first objective for each pair of widths of a layer.
std::optional<PagePart> heat_part(const Record& record) {
  std::string html;
  size_t maps = 0;
  for (size_t w = 0; w < record.parameters.size() && maps < most_heat_maps; ++w) {
    const std::string& weight = record.parameters[w];
    if (!ends_with(weight, "/weight_width")) continue;
    const std::string layer = weight.substr(0, weight.find('/'));
    const auto data = std::find(record.parameters.begin(), record.parameters.end(),
                                replace_all(weight, "/weight_width", "/data_in_width"));
    if (data == record.parameters.end()) continue;
    const auto d = static_cast<size_t>(data - record.parameters.begin());
    const std::vector<Value> rows = sorted_values(record, w), columns = sorted_values(record, d);
    if (rows.size() < 2 || columns.size() < 2 || rows.size() > 64 || columns.size() > 64) continue;
    const Objective& objective = record.objectives[0];
    HeatMap map;
    map.title = fmt::format("Best {} over the widths of {}", objective.name, layer);
    map.row_name = "weight width";
    map.column_name = "data width";
    map.higher_is_better = objective.maximise;
    map.number = objective.text();
    for (const Value& row : rows) map.rows.push_back(value_text(row));
    for (const Value& column : columns) map.columns.push_back(value_text(column));
    map.cells.assign(rows.size(), std::vector<HeatCell>(columns.size()));
    for (const TrialRow& trial : record.trials) {
      if (!std::isfinite(trial.values[0])) continue;
      const auto row = std::find(rows.begin(), rows.end(), trial.settings[w]);
      const auto column = std::find(columns.begin(), columns.end(), trial.settings[d]);
      if (row == rows.end() || column == columns.end()) continue;
      HeatCell& cell = map.cells[static_cast<size_t>(row - rows.begin())]
                                [static_cast<size_t>(column - columns.begin())];
      if (!cell.value || objective.is_better(trial.values[0], *cell.value))
        cell.value = trial.values[0];
      ++cell.count;
    }
    html += heat_map(map);
    ++maps;
  }
  if (html.empty()) return {};
  return PagePart{"widths", "Widths", html};
}

std::optional<PagePart> parallel_part(const Record& record) {
  if (record.parameters.size() < 2 || record.trials.empty()) return {};
  ParallelChart chart;
  chart.title = "Trials, one line each";
  const size_t parameters = std::min(record.parameters.size(), most_axes);
  std::vector<std::vector<Value>> words(parameters);
  for (size_t p = 0; p < parameters; ++p) {
    ParallelAxis axis;
    axis.axis.label = record.parameters[p];
    axis.axis.kind = AxisKind::linear;
    const bool numbers =
        std::all_of(record.trials.begin(), record.trials.end(), [&](const TrialRow& row) {
          return row.settings[p].is_null() || row.settings[p].is_number();
        });
    if (!numbers) {
      words[p] = sorted_values(record, p);
      for (const Value& word : words[p]) axis.choices.push_back(value_text(word));
    }
    chart.axes.push_back(std::move(axis));
  }
  // The first objective last: lines take their colour from it.
  for (size_t k = record.objectives.size(); k-- > 0;)
    chart.axes.push_back(
        {{record.objectives[k].name, AxisKind::linear, record.objectives[k].text()}, {}});
  chart.higher_is_better = record.objectives[0].maximise;
  const size_t step = std::max<size_t>(1, record.trials.size() / most_lines);
  for (size_t i = 0; i < record.trials.size(); ++i) {
    const TrialRow& row = record.trials[i];
    if (i % step != 0 && !row.best) continue;
    ParallelLine line;
    for (size_t p = 0; p < parameters; ++p) {
      const Value& value = row.settings[p];
      double place = std::nan("");
      if (!words[p].empty()) {
        const auto found = std::find(words[p].begin(), words[p].end(), value);
        if (found != words[p].end()) place = static_cast<double>(found - words[p].begin());
      } else if (value.is_number()) {
        place = value.as_double();
      }
      line.values.push_back(place);
    }
    for (size_t k = record.objectives.size(); k-- > 0;) line.values.push_back(row.values[k]);
    line.text.hover = fmt::format("trial {}: {}", row.number, configuration_text(record, row));
    if (row.best) line.text.link = "#" + trial_id(row.number);
    chart.lines.push_back(std::move(line));
  }
  return PagePart{"trials", "Parallel coordinates", parallel_chart(chart)};
}

// They ask different questions, and may well disagree.
std::string meaning(const std::string& evaluator) {
  if (evaluator == "ped-anova") return ": how much it decides whether a trial is among the best";
  if (evaluator == "fanova") return ": how much of the spread over all trials comes from it";
  return "";
}

std::optional<PagePart> importance_part(const Value& given) {
  std::string html;
  for (const Value& one : Record::items(given["importances"])) {
    if (!one.is_dict()) continue;
    HtmlTable table{
        fmt::format("Share of each parameter in {} ({}{})", value_text(one["objective"]),
                    value_text(one["evaluator"]), meaning(value_text(one["evaluator"]))),
        {"parameter", "share"},
        {},
        {},
        {false, true}};
    for (const Value& share : Record::items(one["shares"]))
      if (share.is_dict() && share["share"].is_number())
        table.rows.push_back({value_text(share["parameter"]),
                              fmt::format("{:.1f} %", 100 * share["share"].as_double())});
    if (!table.rows.empty()) html += html_table(table);
  }
  if (html.empty()) return {};
  return PagePart{"importance", "Which parameters matter", html};
}

// One parameter at a time changed from the most accurate trial.
std::optional<PagePart> sensitivity_part(const Value& given) {
  const Value& sensitivity = given["sensitivity"];
  if (!sensitivity.is_dict()) return {};
  HeatMap map;
  std::vector<Value> columns;
  for (const Value& one : Record::items(sensitivity["rows"]))
    for (const Value& cell : Record::items(one["cells"]))
      if (std::find(columns.begin(), columns.end(), cell["setting"]) == columns.end())
        columns.push_back(cell["setting"]);
  if (columns.empty()) return {};
  std::sort(columns.begin(), columns.end(), [](const Value& a, const Value& b) {
    if (a.is_number() && b.is_number()) return a.as_double() < b.as_double();
    return value_text(a) < value_text(b);
  });
  map.title = fmt::format("{} with one parameter changed from trial {}",
                          value_text(sensitivity["figure"]), value_text(sensitivity["trial"]));
  map.row_name = "parameter";
  map.column_name = "its value";
  map.higher_is_better = value_text(sensitivity["figure"]) == "accuracy";
  map.number = map.higher_is_better ? NumberText::percent : NumberText::plain;
  for (const Value& column : columns) map.columns.push_back(value_text(column));
  for (const Value& one : Record::items(sensitivity["rows"])) {
    map.rows.push_back(value_text(one["parameter"]));
    std::vector<HeatCell> cells(columns.size());
    for (const Value& cell : Record::items(one["cells"])) {
      const auto at = std::find(columns.begin(), columns.end(), cell["setting"]);
      if (cell["value"].is_number())
        cells[static_cast<size_t>(at - columns.begin())].value = cell["value"].as_double();
    }
    map.cells.push_back(std::move(cells));
  }
  return PagePart{"sensitivity", "What each parameter alone costs", heat_map(map)};
}

// Several samplers over many seeds: medians with the quarter of the seeds above and below.
std::optional<PagePart> comparison_part(const Value& given) {
  const Value& comparison = given["comparison"];
  if (!comparison.is_dict()) return {};
  BandChart chart;
  const std::string measure = value_text(comparison["measure"]);
  chart.title = measure + " over trials, median and quartiles over seeds";
  chart.x = {"trials", AxisKind::linear, NumberText::whole};
  chart.y = {measure, AxisKind::linear};
  const auto numbers = [](const Value& list) {
    std::vector<double> values;
    for (const Value& value : Record::items(list))
      values.push_back(value.is_number() ? value.as_double() : std::nan(""));
    return values;
  };
  HtmlTable table{"Samplers", {"sampler"}, {}, {}, {false}};
  for (const Value& name : Record::items(comparison["columns"])) {
    table.header.push_back(value_text(name));
    table.numeric.push_back(true);
  }
  for (const Value& one : Record::items(comparison["samplers"])) {
    BandSeries series{value_text(one["name"]), numbers(one["trial"]), numbers(one["median"]),
                      numbers(one["low"]), numbers(one["high"])};
    if (series.y.size() != series.x.size() || series.low.size() != series.x.size() ||
        series.high.size() != series.x.size())
      continue;
    std::vector<HtmlCell> cells = {series.name};
    for (const Value& cell : Record::items(one["cells"])) cells.push_back(value_text(cell));
    cells.resize(table.header.size());
    table.rows.push_back(std::move(cells));
    chart.series.push_back(std::move(series));
  }
  if (chart.series.empty()) return {};
  return PagePart{"samplers", "Samplers compared", band_chart(chart) + html_table(table)};
}

using FigureText = std::string (*)(double value, int decimals);
std::string number_cell(const Value& value, FigureText text) {
  return value.is_number() ? text(value.as_double(), 4) : "–";
}

std::optional<PagePart> best_part(const Value& given, const Record& record) {
  HtmlTable table{"Best trials", {"trial"}, {}, {}, {true}};
  for (const Objective& objective : record.objectives) table.header.push_back(objective.name);
  table.numeric.resize(record.objectives.size() + 1, true);
  std::map<int64_t, const Value*> tested;
  for (const Value& one : Record::items(given["test"]))
    if (one.is_dict() && one["number"].is_int()) tested[one["number"].as_int()] = &one;
  if (!tested.empty())
    for (const char* name : {"test accuracy", "95 % interval", "difference", "95 % interval"}) {
      table.header.emplace_back(name);
      table.numeric.push_back(true);
    }
  std::string configurations;
  for (const TrialRow& row : record.trials) {
    if (!row.best) continue;
    std::vector<HtmlCell> cells = {std::to_string(row.number)};
    for (const double value : row.values) cells.push_back(fmt::format("{:.6g}", value));
    if (!tested.empty()) {
      const auto found = tested.find(row.number);
      if (found == tested.end()) {
        cells.resize(cells.size() + 4, "–");
      } else {
        const Value& test = *found->second;
        const auto range = [&](const char* low, const char* high, FigureText text) {
          return number_cell(test[low], text) + " to " + number_cell(test[high], text);
        };
        cells.push_back(number_cell(test["accuracy"], figure_text));
        cells.push_back(range("low", "high", figure_text));
        cells.push_back(number_cell(test["difference"], signed_figure_text));
        cells.push_back(range("difference_low", "difference_high", signed_figure_text));
      }
    }
    table.rows.push_back(std::move(cells));
    table.links.push_back("#" + trial_id(row.number));
    HtmlTable settings{"", {"parameter", "value"}, {}, {}, {false, true}};
    for (size_t p = 0; p < row.settings.size(); ++p)
      if (!row.settings[p].is_null())
        settings.rows.push_back({record.parameters[p], value_text(row.settings[p])});
    configurations += fmt::format("<h3 id=\"{}\">Trial {}</h3>", trial_id(row.number), row.number) +
                      html_table(settings);
  }
  if (table.rows.empty()) return {};
  return PagePart{"best", "Best trials", html_table(table) + configurations};
}

}  // namespace

std::optional<Value> read_search_record(const std::string& run_folder) {
  const std::string path = run_folder + "/software/search_ckpts/search.json";
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return {};
  return read_json(path);
}

std::vector<PagePart> search_parts(const Value& given) {
  const Record record(given);
  std::vector<PagePart> parts;
  if (auto comparison = given.is_dict() ? comparison_part(given) : std::nullopt)
    parts.push_back(std::move(*comparison));
  if (record.objectives.empty() || record.trials.empty()) return parts;
  parts.push_back(progress_part(given, record));
  for (auto part : {front_part(record), heat_part(record), parallel_part(record),
                    importance_part(given), sensitivity_part(given), best_part(given, record)})
    if (part) parts.push_back(std::move(*part));
  return parts;
}

PageFrame search_frame(const Value& record) {
  const auto text = [&](const char* key) { return value_text(record[key]); };
  PageFrame frame;
  frame.title = "Search";
  if (!record.is_dict()) return frame;
  if (record["storage"].is_string()) {  // of a study: who searched, and on what, it does not say
    frame.title = text("study");
    frame.subtitle = fmt::format("study '{}' in {}: {} trials, {} of them complete", text("study"),
                                 text("storage"), text("total"), text("complete"));
    frame.measured = "what its trials measured";
    return frame;
  }
  frame.subtitle =
      fmt::format("study '{}': {} trials of {} configurations by {}, seed {}", text("study"),
                  text("total"), text("configurations"), text("sampler"), text("seed"));
  frame.measured =
      fmt::format("{}{} {} rows", text("rows"),
                  record["split_rows"].is_int() && record["split_rows"] != record["rows"]
                      ? " of " + text("split_rows")
                      : "",
                  text("split"));
  return frame;
}

std::string search_plots(const Value& given, const PlotStyle& style) {
  const Record record(given);
  std::string text;
  if (given["comparison"].is_dict()) {
    CurvePlot plot;
    plot.title = value_text(given["comparison"]["measure"]) + ", median over seeds";
    plot.x_label = "trials";
    for (const Value& one : Record::items(given["comparison"]["samplers"])) {
      Curve curve;
      curve.name = value_text(one["name"]);
      for (const Value& x : Record::items(one["trial"])) curve.x.push_back(x.as_double());
      for (const Value& y : Record::items(one["median"])) curve.y.push_back(y.as_double());
      plot.curves.push_back(std::move(curve));
    }
    return plot_curves(plot, style) + "\n";
  }
  const List& curves = Record::items(given["best_so_far"]);
  for (size_t k = 0; k < record.objectives.size() && k < curves.size(); ++k) {
    CurvePlot plot;
    plot.title = "best " + record.objectives[k].name + " so far";
    plot.x_label = "trials";
    Curve curve;
    curve.name = record.objectives[k].name;
    for (const Value& x : Record::items(curves[k]["trial"])) curve.x.push_back(x.as_double() + 1);
    for (const Value& y : Record::items(curves[k]["value"])) curve.y.push_back(y.as_double());
    plot.curves = {std::move(curve)};
    text += plot_curves(plot, style) + "\n";
  }
  if (record.objectives.size() != 2) return text;
  std::vector<std::pair<double, double>> front;
  for (const TrialRow& row : record.trials)
    if (row.best) front.emplace_back(row.values[1], row.values[0]);
  std::sort(front.begin(), front.end());
  CurvePlot plot;
  plot.title =
      fmt::format("front: {} over {}", record.objectives[0].name, record.objectives[1].name);
  plot.x_label = record.objectives[1].name;
  Curve curve;
  curve.name = "best trials";
  for (const auto& [x, y] : front) {
    curve.x.push_back(x);
    curve.y.push_back(y);
  }
  if (curve.x.size() > 1) {
    plot.curves = {std::move(curve)};
    text += plot_curves(plot, style) + "\n";
  }
  return text;
}

}  // namespace mase
