// SPDX-License-Identifier: Apache-2.0
// The curves of a run, and its numbers per epoch.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

#include "mase/base/text.h"
#include "mase/report/charts/charts.h"
#include "mase/report/pages/html.h"
#include "mase/report/pages/run_parts.h"
#include "mase/report/pages/shown.h"

namespace mase {
namespace {

AxisOptions step_axis() { return {"step", AxisKind::linear, NumberText::whole}; }

BandSeries series_of(const Curve& curve, const std::string& name, size_t colour) {
  BandSeries series{name, curve.x, curve.y};
  series.colour = series_colour(colour);
  return series;
}

// Training per step behind, its epoch mean and validation before it. Means over all batches where
// the run wrote them; otherwise over the steps it logged, and said so.
std::string quantity_chart(const RunData& run, const std::string& quantity,
                           const std::string& title, bool share, std::set<std::string>& used) {
  BandChart chart{title, step_axis(), {title}, {}};
  chart.id = share ? "chart-accuracy" : "chart-" + quantity;
  if (share) {
    chart.y.text = NumberText::percent;
    chart.y.kind = AxisKind::linear;
  }
  const auto add = [&](const std::string& name, const char* shown_name, const char* label,
                       size_t colour, bool faint) {
    used.insert(name);
    const Curve* curve = run.curve(name);
    if (!curve) return false;
    BandSeries series = series_of(*curve, shown_name, colour);
    series.faint = faint;
    series.text.label = label;
    chart.series.push_back(std::move(series));
    return true;
  };
  add("train_" + quantity + "_step", "train, per step", "", 0, true);
  const bool whole = add("train_" + quantity + "_epoch", "train, epoch mean", "train", 0, false);
  used.insert("train_" + quantity + "_logged");
  if (!whole)
    add("train_" + quantity + "_logged", "train, mean of logged steps", "train (logged)", 0, false);
  add("val_" + quantity + "_epoch", "validation, per epoch", "validation", 1, false);
  return chart.series.empty() ? "" : band_chart(chart);
}

std::string epoch_table(const RunData& run) {
  HtmlTable table{"Numbers per epoch", {"epoch"}, {}, {}, {true}};
  table.id = "epochs";
  std::vector<std::pair<const Curve*, bool>> columns;
  for (const auto& [name, title, share] :
       {std::tuple{"train_loss_epoch", "train loss", false},
        {"train_loss_logged", "train loss (logged steps)", false},
        {"val_loss_epoch", "validation loss", false},
        {"train_acc_epoch", "train accuracy", true},
        {"train_acc_logged", "train accuracy (logged steps)", true},
        {"val_acc_epoch", "validation accuracy", true}}) {
    const Curve* curve = run.curve(name);
    if (!curve) continue;
    columns.emplace_back(curve, share);
    table.header.emplace_back(title);
    table.numeric.push_back(true);
  }
  if (columns.empty() || run.epochs.empty() || run.epochs.size() > 2000) return "";
  for (size_t i = 0; i < run.epochs.size(); ++i) {
    std::vector<HtmlCell> row = {fmt::format("{}", run.epochs[i])};
    for (const auto& [curve, share] : columns) {
      const auto at = std::lower_bound(curve->x.begin(), curve->x.end(), run.epoch_steps[i]);
      std::optional<double> value;
      if (at != curve->x.end() && *at == run.epoch_steps[i])
        value = curve->y[static_cast<size_t>(at - curve->x.begin())];
      row.emplace_back(share ? shown::percent(value) : shown::brief(value));
    }
    table.rows.push_back(std::move(row));
  }
  return folded_html("Numbers per epoch", html_table(table));
}

}  // namespace

std::vector<double> in_epochs(const RunData& run, const std::vector<double>& steps) {
  if (run.epoch_steps.empty()) return steps;
  std::vector<double> at = {0};
  at.insert(at.end(), run.epoch_steps.begin(), run.epoch_steps.end());
  std::vector<double> result;
  for (const double step : steps) {
    const auto above = std::upper_bound(at.begin(), at.end(), step);
    const size_t high =
        std::clamp<size_t>(static_cast<size_t>(above - at.begin()), 1, at.size() - 1);
    const double span = at[high] - at[high - 1];
    result.push_back(static_cast<double>(high - 1) + (span > 0 ? (step - at[high - 1]) / span : 1));
  }
  return result;
}

std::optional<PagePart> curves_part(const RunData& run) {
  std::set<std::string> used = {"learning_rate", "seconds", "epoch", "step"};
  const Value& evaluated = run.run["evaluation"];
  const std::string loss =
      evaluated.is_dict() ? replace_all(shown::word(evaluated["loss_name"]), "_", " ") : "";
  std::string charts =
      quantity_chart(run, "loss", loss.empty() ? "Loss" : "Loss: " + loss, false, used) +
      quantity_chart(run, "acc", "Accuracy", true, used);
  const auto small = [&](const Curve& curve, const std::string& title, size_t colour, bool steps) {
    BandChart chart{title, step_axis(), {title}, {series_of(curve, lower_case(title), colour)}};
    chart.series[0].steps = steps;
    if (steps) chart.id = "chart-rate";
    charts += band_chart(chart);
  };
  if (const Curve* rate = run.curve("learning_rate")) small(*rate, "Learning rate", 4, true);
  for (const Curve& curve : run.curves)
    if (!used.count(curve.name)) small(curve, curve.name, 2, false);
  if (charts.empty()) return {};
  return PagePart{"curves", "Curves",
                  "<div class=\"charts\">" + charts + "</div>" + epoch_table(run)};
}

}  // namespace mase
