// SPDX-License-Identifier: Apache-2.0
#include "mase/report/pages/compare_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

#include "mase/base/text.h"
#include "mase/report/charts/charts.h"
#include "mase/report/pages/html.h"
#include "mase/report/pages/run_groups.h"
#include "mase/report/pages/run_parts.h"
#include "mase/report/pages/shown.h"

namespace mase {
namespace {

// Of all lines on a page together: about 12 bytes each, and far more than a screen shows.
constexpr size_t most_points = 60000, fewest_points = 16;
constexpr size_t most_effects = 4;  // options beyond which a page of effects says nothing

// A run has one colour on the whole page: its own, or that of its value of one option.
struct Colours {
  std::vector<std::string> of_run, label;
  std::string legend, by;           // the option, if it is one
  std::vector<std::string> values;  // of that option, in the order of their colours
};

// The option whose values move the result most: what curves of many runs are best coloured by.
const OptionColumn* strongest(const std::vector<RunData>& runs,
                              const std::vector<OptionColumn>& columns,
                              const std::vector<CompareFigure>& figures) {
  const OptionColumn* best = nullptr;
  double widest = -1;
  for (const OptionColumn& column : columns) {
    double low = INFINITY, high = -INFINITY;
    for (const std::string& value : ordered_values(column.values)) {
      std::vector<size_t> which;
      for (size_t i = 0; i < runs.size(); ++i)
        if (column.values[i] == value) which.push_back(i);
      if (figures.empty()) continue;
      if (const auto found = summary_of(runs, which, figures[0].of)) {
        low = std::min(low, found->mean);
        high = std::max(high, found->mean);
      }
    }
    if (high - low > widest || !best) {
      best = &column;
      widest = high - low;
    }
  }
  return best;
}

Colours colours_of(const std::vector<RunData>& runs, const std::vector<OptionColumn>& columns,
                   const std::vector<CompareFigure>& figures) {
  Colours colours;
  const OptionColumn* by = runs.size() > 8 ? strongest(runs, columns, figures) : nullptr;
  if (by) {
    colours.by = by->name;
    colours.values = ordered_values(by->values);
  }
  const std::vector<std::string>& values = colours.values;
  for (size_t i = 0; i < runs.size(); ++i) {
    const size_t at =
        by ? static_cast<size_t>(std::find(values.begin(), values.end(), by->values[i]) -
                                 values.begin())
           : i;
    colours.of_run.push_back(series_colour(at));
    colours.label.push_back(by ? by->values[i] : runs[i].name);
  }
  if (by && values.size() <= 30) {
    colours.legend = "<ul class=\"legend inline\" id=\"colour-key\">";
    for (size_t k = 0; k < values.size(); ++k)
      colours.legend +=
          fmt::format("<li><span class=\"swatch\" style=\"background:{}\"></span>{} {}</li>",
                      series_colour(k), escaped(by->name), escaped(shown::file_name(values[k])));
    colours.legend += "</ul>";
  }
  return colours;
}

std::string setting_text(const std::vector<OptionColumn>& columns, const RunGroup& group,
                         const std::set<size_t>& without) {
  std::vector<std::string> parts;
  for (size_t k = 0; k < columns.size(); ++k)
    if (!without.count(k))
      parts.push_back(columns[k].name + " " + shown::file_name(group.values[k]));
  return join(parts, ", ");
}

// The result against one option's values, a line for each setting of the others.
std::string effect_chart(const std::vector<RunData>& runs, const std::vector<RunGroup>& groups,
                         const std::vector<OptionColumn>& columns, size_t index,
                         const CompareFigure& figure, const Colours& colours) {
  const std::vector<std::string> values = ordered_values(columns[index].values);
  BandChart chart{
      "Effect of " + columns[index].name + " on " + figure.title, {}, {figure.title}, {}};
  chart.x.label = columns[index].name;
  for (const std::string& value : values) chart.x.words.push_back(shown::file_name(value));
  chart.y.kind = AxisKind::linear;
  chart.y.text = figure.percent ? NumberText::percent : NumberText::plain;
  std::map<std::string, BandSeries> lines;
  for (const RunGroup& group : groups) {
    const auto found = summary_of(runs, group.runs, figure.of);
    if (!found) continue;
    const std::string other = setting_text(columns, group, {index});
    BandSeries& line = lines[other];
    line.name = other.empty() ? figure.title : other;
    std::vector<std::string> values_alone;
    line.colour = "var(--muted)";
    for (size_t k = 0; k < columns.size(); ++k) {
      if (k == index) continue;
      values_alone.push_back(shown::file_name(group.values[k]));
      if (columns[k].name == colours.by)
        line.colour = series_colour(static_cast<size_t>(
            std::find(colours.values.begin(), colours.values.end(), group.values[k]) -
            colours.values.begin()));
    }
    line.text = {columns.size() == 2 ? other : join(values_alone, ", "), line.name, ""};
    line.x.push_back(static_cast<double>(
        std::find(values.begin(), values.end(), group.values[index]) - values.begin()));
    line.y.push_back(found->mean);
    line.low.push_back(found->mean - found->deviation.value_or(0));
    line.high.push_back(found->mean + found->deviation.value_or(0));
  }
  for (auto& [other, line] : lines) {
    std::vector<size_t> order(line.x.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::sort(order.begin(), order.end(),
              [&x = line.x](size_t a, size_t b) { return x[a] < x[b]; });
    BandSeries sorted = line;
    for (size_t i = 0; i < order.size(); ++i) {
      sorted.x[i] = line.x[order[i]];
      sorted.y[i] = line.y[order[i]];
      sorted.low[i] = line.low[order[i]];
      sorted.high[i] = line.high[order[i]];
    }
    chart.series.push_back(std::move(sorted));
  }
  if (values.size() > 40 || chart.series.size() > 40) return "";
  return band_chart(chart);
}

// Two options against each other. A cell that lacks some of the others' settings would compare
// unlike with unlike: it is left empty.
std::string heat_of(const std::vector<RunData>& runs, const std::vector<RunGroup>& groups,
                    const std::vector<OptionColumn>& columns, size_t a, size_t b,
                    const CompareFigure& figure) {
  HeatMap map;
  map.title = figure.title;
  map.row_name = columns[a].name;
  map.column_name = columns[b].name;
  map.higher_is_better = figure.up;
  map.number = figure.percent ? NumberText::percent : NumberText::plain;
  const std::vector<std::string> rows = ordered_values(columns[a].values),
                                 across = ordered_values(columns[b].values);
  if (rows.size() > 40 || across.size() > 40) return "";
  std::set<std::string> others;
  for (const RunGroup& group : groups) others.insert(setting_text(columns, group, {a, b}));
  for (const std::string& name : across) map.columns.push_back(shown::file_name(name));
  for (const std::string& row : rows) {
    map.rows.push_back(shown::file_name(row));
    std::vector<HeatCell> cells;
    for (const std::string& column : across) {
      HeatCell cell;
      std::vector<GroupSummary> found;
      for (const RunGroup& group : groups)
        if (group.values[a] == row && group.values[b] == column)
          if (const auto one = summary_of(runs, group.runs, figure.of)) found.push_back(*one);
      std::set<size_t> counts;
      double mean = 0;
      for (const GroupSummary& one : found) {
        cell.count += static_cast<int64_t>(one.count);
        counts.insert(one.count);
        mean += one.mean / static_cast<double>(found.size());
      }
      if (found.size() == others.size() && counts.size() == 1) {
        cell.value = mean;
        if (found.size() == 1) cell.deviation = found[0].deviation;
      } else if (!found.empty()) {
        cell.text.label = "unbalanced";
      }
      cells.push_back(std::move(cell));
    }
    map.cells.push_back(std::move(cells));
  }
  return heat_map(map);
}

std::optional<PagePart> effects_part(const std::vector<RunData>& runs,
                                     const std::vector<OptionColumn>& columns,
                                     const std::vector<CompareFigure>& figures,
                                     const Colours& colours) {
  const std::vector<RunGroup> groups = run_groups(runs, columns);
  if (figures.empty() || columns.empty() || columns.size() > most_effects || groups.size() < 2)
    return {};
  std::string html;
  for (size_t f = 0; f < figures.size(); ++f) {
    std::string charts;
    for (size_t i = 0; i < columns.size(); ++i)
      charts += effect_chart(runs, groups, columns, i, figures[f], colours);
    for (size_t a = 0; a < columns.size(); ++a)
      for (size_t b = a + 1; b < columns.size(); ++b)
        charts += heat_of(runs, groups, columns, a, b, figures[f]);
    charts = "<div class=\"charts\">" + charts + "</div>";
    html += f == 0 ? charts : folded_html("The same for " + figures[f].title, charts);
  }
  if (std::any_of(groups.begin(), groups.end(),
                  [](const RunGroup& g) { return g.runs.size() > 1; }))
    html += note_html(
        "n: runs in a point or cell. Bands and ± are standard deviations over runs that differ in "
        "nothing but the seed.");
  if (!same_data(runs))
    html += note_html(
        "The runs were measured on different data: differences between them are not those of the "
        "options alone.");
  return PagePart{"effects", "What the options do", html};
}

// Curves over each other; runs on other data than the first are dashed. Runs with different batch
// sizes meet at epochs, not at steps.
std::optional<PagePart> overlay_part(const std::vector<RunData>& runs, const Colours& colours) {
  const bool whole = std::any_of(runs.begin(), runs.end(), [](const RunData& run) {
    return run.curve("train_loss_epoch") != nullptr;
  });
  const bool epochs =
      std::any_of(runs.begin(), runs.end(), [](const RunData& run) { return !run.epochs.empty(); });
  std::string charts;
  const size_t most = std::max(most_points / (5 * std::max<size_t>(1, runs.size())), fewest_points);
  for (const auto& [name, title, id, share] :
       {std::tuple{"val_acc_epoch", "Validation accuracy", "compare-accuracy", true},
        {whole ? "train_acc_epoch" : "train_acc_logged",
         whole ? "Training accuracy, epoch mean" : "Training accuracy, mean of logged steps",
         "compare-train-accuracy", true},
        {"val_loss_epoch", "Validation loss", "compare-loss", false},
        {whole ? "train_loss_epoch" : "train_loss_logged",
         whole ? "Training loss, epoch mean" : "Training loss, mean of logged steps",
         "compare-train", false},
        {"learning_rate", "Learning rate", "compare-rate", false}}) {
    BandChart chart{title,
                    {epochs ? "epochs completed" : "step", AxisKind::linear, NumberText::whole},
                    {title},
                    {}};
    chart.id = id;
    chart.most_points = most;
    if (share) {
      chart.y.text = NumberText::percent;
      chart.y.kind = AxisKind::linear;
    }
    std::set<std::string> named;
    for (size_t i = 0; i < runs.size(); ++i) {
      const Curve* curve = runs[i].curve(name);
      if (!curve) continue;
      BandSeries series{runs[i].name, in_epochs(runs[i], curve->x), curve->y};
      series.colour = colours.of_run[i];
      series.run = std::to_string(i);
      series.text.label = colours.label[i];
      series.dashed = data_identity(runs[i]) != data_identity(runs[0]);
      series.steps = series.text.hover.empty() && std::string(name) == "learning_rate" &&
                     curve->x.size() < 400;
      chart.series.push_back(std::move(series));
    }
    chart.named = colours.legend.empty() && chart.series.size() <= 12;
    if (!chart.series.empty()) charts += band_chart(chart);
  }
  if (charts.empty()) return {};
  return PagePart{"curves", "Curves",
                  colours.legend + "<div class=\"charts\">" + charts + "</div>"};
}

std::optional<PagePart> settings_part(const std::vector<RunData>& runs,
                                      const std::vector<OptionColumn>& columns,
                                      const std::vector<CompareFigure>& figures) {
  const std::vector<RunGroup> groups = run_groups(runs, columns);
  if (columns.empty() || std::none_of(groups.begin(), groups.end(),
                                      [](const RunGroup& g) { return g.runs.size() > 1; }))
    return {};
  HtmlTable table{"Mean over the runs of each setting; ± is the standard deviation over seeds",
                  {"setting"},
                  {},
                  {},
                  {false}};
  table.id = "setting-table";
  for (const CompareFigure& figure : figures) table.header.push_back(figure.title);
  for (const char* name : {"n", "time"}) table.header.emplace_back(name);
  table.numeric.resize(table.header.size(), true);
  for (const RunGroup& group : groups) {
    std::vector<HtmlCell> row = {setting_text(columns, group, {})};
    for (const CompareFigure& figure : figures) {
      const auto found = summary_of(runs, group.runs, figure.of);
      row.push_back(
          found ? HtmlCell(figure.text(found->mean) +
                               (found->deviation ? " ± " + figure.text(found->deviation) : ""),
                           shown::key(found->mean))
                : HtmlCell("–"));
    }
    row.emplace_back(std::to_string(group.runs.size()));
    const auto time = summary_of(runs, group.runs, [](const RunData& run) {
      return shown::number(shown::entry(run.run["speed"], "seconds"));
    });
    row.push_back(time ? HtmlCell(shown::duration(time->mean), shown::key(time->mean)) : "–");
    table.rows.push_back(std::move(row));
  }
  return PagePart{"settings", "Settings, over seeds", html_table(table)};
}

PagePart runs_part(const std::vector<RunData>& runs, const std::vector<OptionColumn>& columns,
                   const std::vector<CompareFigure>& figures, const Colours& colours) {
  HtmlTable table{fmt::format("{} runs", runs.size()), {"run"}, {}, {}, {false}};
  table.id = "run-table";
  table.colours = colours.of_run;
  const bool comparable = same_data(runs);
  std::vector<std::optional<double>> winners;
  for (const CompareFigure& figure : figures) {
    table.header.push_back(figure.title);
    table.numeric.push_back(true);
    std::optional<double> best;
    size_t measured = 0;
    for (const RunData& run : runs)
      if (const auto value = figure.of(run)) {
        ++measured;
        if (!best || (figure.up ? *value > *best : *value < *best)) best = value;
      }
    winners.push_back(comparable && measured > 1 ? best : std::nullopt);
  }
  std::vector<std::string> seeds;
  for (const RunData& run : runs) {
    const auto options = options_of(run);
    const auto seed = options.find("seed");
    seeds.push_back(seed == options.end() ? "–" : seed->second);
  }
  const bool show_seed = std::set<std::string>(seeds.begin(), seeds.end()).size() > 1;
  for (const OptionColumn& column : columns) table.header.push_back(column.name);
  table.numeric.resize(table.header.size(), false);
  if (show_seed) table.header.emplace_back("seed");
  for (const char* name : {"time", "samples/s"}) table.header.emplace_back(name);
  table.numeric.resize(table.header.size(), true);
  table.header.emplace_back("status");
  for (size_t i = 0; i < runs.size(); ++i) {
    const Value& speed = runs[i].run["speed"];
    std::vector<HtmlCell> row = {{runs[i].name, "", "", runs[i].folder}};
    for (size_t f = 0; f < figures.size(); ++f) {
      const auto value = figures[f].of(runs[i]);
      row.emplace_back(figures[f].text(value), shown::key(value),
                       value && value == winners[f] ? "winner" : "");
    }
    for (const OptionColumn& column : columns) {
      const std::string name = shown::file_name(column.values[i]);
      row.emplace_back(name, "", "differs", name == column.values[i] ? "" : column.values[i]);
    }
    if (show_seed) row.emplace_back(seeds[i]);
    const auto seconds = shown::number(shown::entry(speed, "seconds"));
    row.emplace_back(shown::duration(seconds), shown::key(seconds));
    row.emplace_back(shown::whole(shown::number(shown::entry(speed, "samples_per_second"))));
    const std::string status = shown::word(runs[i].run["status"]);
    row.emplace_back(status.empty() ? runs[i].problem : status);
    table.rows.push_back(std::move(row));
  }
  return {"runs", "Runs", html_table(table)};
}

// What differs first; what all runs share is folded away.
std::optional<PagePart> options_compared(const std::vector<RunData>& runs) {
  if (runs.size() > 12) return {};
  std::vector<std::map<std::string, std::string>> all;
  std::set<std::string> names;
  for (const RunData& run : runs) {
    all.push_back(options_of(run));
    for (const auto& [name, value] : all.back()) names.insert(name);
  }
  HtmlTable apart{"Options that differ", {"option"}, {}},
      shared{"Options that all runs share", {"option", "value"}, {}};
  apart.id = "option-compare";
  for (const RunData& run : runs) apart.header.push_back(run.name);
  for (const std::string& name : names) {
    std::set<std::string> values;
    std::vector<HtmlCell> row = {name};
    for (const auto& one : all) {
      const auto found = one.find(name);
      const std::string value = found == one.end() ? "–" : found->second;
      values.insert(value);
      row.emplace_back(shown::file_name(value), "", "", value);
    }
    if (values.size() > 1)
      apart.rows.push_back(std::move(row));
    else
      shared.rows.push_back({name, row[1]});
  }
  if (names.empty()) return {};
  std::string html =
      apart.rows.empty() ? note_html("All options are the same.") : html_table(apart);
  if (!shared.rows.empty())
    html += folded_html(fmt::format("{} options that all runs share", shared.rows.size()),
                        html_table(shared));
  return PagePart{"options", "Options", html};
}

std::string data_list(const std::vector<RunData>& runs) {
  std::map<std::string, size_t> counts;
  for (const std::string& label : data_labels(runs)) ++counts[label];
  std::vector<std::string> parts;
  for (const auto& [name, count] : counts)
    parts.push_back(
        counts.size() == 1
            ? name
            : fmt::format("{} ({})", name, count == 1 ? "1 run" : fmt::format("{} runs", count)));
  return join(parts, ", ");
}

}  // namespace

PageFrame compare_frame(const std::vector<RunData>& runs) {
  PageFrame frame;
  frame.title = "Comparison of runs";
  frame.subtitle = fmt::format("{} runs compared", runs.size());
  frame.measured = data_list(runs);
  return frame;
}

std::vector<PagePart> compare_parts(const std::vector<RunData>& runs, const FailedRuns& failed) {
  std::vector<PagePart> parts;
  const auto add = [&](std::optional<PagePart> part) {
    if (part) parts.push_back(std::move(*part));
  };
  if (!same_data(runs))
    parts.push_back(
        {"data-notice", "",
         "<p class=\"trouble\"><strong>Different data: </strong>" + escaped(data_list(runs)) +
             ". Figures are not comparable across them; curves on other data than the first run’s "
             "are dashed.</p>"});
  if (!failed.empty()) {
    HtmlTable table{"Failed runs", {"run", "cause"}, {}};
    for (const auto& [name, cause] : failed) table.rows.push_back({name, cause});
    parts.push_back({"failed", "Failed runs", html_table(table)});
  }
  const std::vector<OptionColumn> columns = differing_options(runs);
  const std::vector<CompareFigure> figures = compare_figures(runs);
  const Colours colours = colours_of(runs, columns, figures);
  add(effects_part(runs, columns, figures, colours));
  add(overlay_part(runs, colours));
  add(settings_part(runs, columns, figures));
  parts.push_back(runs_part(runs, columns, figures, colours));
  add(options_compared(runs));
  return parts;
}

}  // namespace mase
