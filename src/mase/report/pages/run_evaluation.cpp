// SPDX-License-Identifier: Apache-2.0
// How good a classifier is: confusion matrix, precision and recall, ROC as physicists read it.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <set>

#include "mase/base/figure.h"
#include "mase/base/text.h"
#include "mase/report/charts/charts.h"
#include "mase/report/pages/html.h"
#include "mase/report/pages/run_parts.h"
#include "mase/report/pages/shown.h"

namespace mase {
namespace {

using shown::items;
using shown::number;

constexpr std::array<double, 3> efficiencies = {0.3, 0.5, 0.8};  // of the signal, as jet papers do
constexpr size_t most_roc_points = 400;

struct RocCurve {
  std::string name;
  std::optional<double> auc, background_rows;
  std::vector<double> signal, background;
  const Value* working = nullptr;
};

std::string class_name(const Value& classes, size_t i) {
  const List& all = items(classes);
  return i < all.size() ? shown::text(all[i]) : std::to_string(i);
}

// Of many classes a record has the cells that are not empty: what is taken for what most often.
std::string confusions(const List& cells, const Value& classes) {
  std::vector<const List*> wrong;
  for (const Value& cell : cells)
    if (items(cell).size() == 3 && number(items(cell)[2]) && items(cell)[0].is_int() &&
        items(cell)[1].is_int() && items(cell)[0] != items(cell)[1])
      wrong.push_back(&items(cell));
  std::stable_sort(wrong.begin(), wrong.end(), [](const List* a, const List* b) {
    return (*a)[2].as_double() > (*b)[2].as_double();
  });
  if (wrong.size() > 20) wrong.resize(20);
  HtmlTable table{"Rows that were given another class, the most frequent",
                  {"true class", "predicted class", "rows"},
                  {},
                  {},
                  {false, false, true}};
  for (const List* cell : wrong)
    table.rows.push_back({class_name(classes, static_cast<size_t>((*cell)[0].as_int())),
                          class_name(classes, static_cast<size_t>((*cell)[1].as_int())),
                          shown::whole((*cell)[2].as_double())});
  return table.rows.empty() ? "" : html_table(table);
}

std::string confusion_matrix(const Value& matrix, const Value& classes) {
  if (matrix.is_dict()) return confusions(items(matrix["cells"]), classes);
  const List& rows = items(matrix);
  if (rows.empty()) return "";
  std::string html =
      "<figure class=\"heat drawn\"><figcaption>Confusion matrix: true class (down), predicted "
      "class "
      "(across), share of the row and rows</figcaption><div class=\"scroll\"><table "
      "id=\"confusion\" class=\"matrix\"><thead><tr><td></td>";
  for (size_t j = 0; j < rows.size(); ++j)
    html += "<th scope=\"col\">" + escaped(class_name(classes, j)) + "</th>";
  html += "</tr></thead><tbody>";
  for (size_t i = 0; i < rows.size(); ++i) {
    double total = 0;
    for (const Value& count : items(rows[i])) total += number(count).value_or(0);
    html += "<tr><th scope=\"row\">" + escaped(class_name(classes, i)) + "</th>";
    for (const Value& cell : items(rows[i])) {
      const double count = number(cell).value_or(0), share = total > 0 ? count / total : 0;
      html += fmt::format("<td class=\"cell{}\" style=\"--share:{:.3f}\">{}<small>{}</small></td>",
                          share > 0.45 ? " strong" : "", share, shown::percent(share, 1),
                          shown::whole(count));
    }
    html += "</tr>";
  }
  return html + "</tbody></table></div></figure>";
}

std::optional<double> background_rows(const Value& found, size_t i) {
  double sum = 0;
  if (found["support"].is_list()) {
    const List& support = items(found["support"]);
    for (size_t k = 0; k < support.size(); ++k)
      if (k != i) sum += number(support[k]).value_or(0);
    return sum;
  }
  const List& matrix = items(found["confusion"]);
  if (i >= matrix.size()) return {};
  for (size_t k = 0; k < matrix.size(); ++k)
    if (k != i)
      for (const Value& count : items(matrix[k])) sum += number(count).value_or(0);
  return sum;
}

std::vector<RocCurve> roc_curves(const Value& found, const Value& classes) {
  std::vector<RocCurve> curves;
  const List& all = items(found["roc"]);
  for (size_t i = 0; i < all.size(); ++i) {
    if (!all[i].is_dict()) continue;
    RocCurve curve;
    curve.name = shown::text(all[i]["class"]);
    if (const auto index = parse_integer(curve.name); index && *index >= 0 && classes.is_list())
      curve.name = class_name(classes, static_cast<size_t>(*index));
    curve.auc = number(all[i]["auc"]);
    curve.background_rows = background_rows(found, i);
    curve.working = &all[i]["working_points"];
    const List &fpr = items(all[i]["fpr"]), &tpr = items(all[i]["tpr"]);
    for (size_t k = 0; k < std::min(fpr.size(), tpr.size()); ++k)
      if (number(fpr[k]) && number(tpr[k])) {
        curve.background.push_back(fpr[k].as_double());
        curve.signal.push_back(tpr[k].as_double());
      }
    curves.push_back(std::move(curve));
  }
  return curves;
}

// Signal efficiency to the right, background efficiency upwards on a logarithmic axis.
std::string roc_chart(const std::vector<RocCurve>& curves) {
  BandChart chart{
      "ROC, each class against the rest",
      {"signal efficiency (true positive rate)", AxisKind::linear, NumberText::percent},
      {"background efficiency (false positive rate)", AxisKind::logarithmic, NumberText::percent},
      {}};
  chart.id = "chart-roc";
  chart.most_points = most_roc_points;
  for (size_t i = 0; i < curves.size(); ++i) {
    BandSeries series{curves[i].name, {}, {}};
    series.colour = series_colour(i);
    if (curves[i].auc)
      series.text.hover =
          fmt::format("{}: area under the curve {}", curves[i].name, figure_text(*curves[i].auc));
    series.text.label = curves[i].name;
    for (size_t k = 0; k < curves[i].signal.size(); ++k)
      if (curves[i].background[k] > 0) {
        series.x.push_back(curves[i].signal[k]);
        series.y.push_back(curves[i].background[k]);
      }
    if (!series.x.empty()) chart.series.push_back(std::move(series));
  }
  if (chart.series.empty()) return "";
  BandSeries chance{"chance", {}, {}};
  for (int k = 1; k <= 20; ++k) {
    chance.x.push_back(k / 20.0);
    chance.y.push_back(k / 20.0);
  }
  chance.colour = "var(--muted)";
  chance.faint = chance.dashed = true;
  chart.series.push_back(std::move(chance));
  return band_chart(chart) + note_html("The dashed line is chance.");
}

// Background efficiency where the signal's is `wanted`: what the run says of its whole curve, or
// between the two nearest points that it has.
std::optional<double> background_at(const RocCurve& curve, double wanted) {
  for (const Value& point : items(*curve.working))
    if (point.is_dict() && number(point["signal"]) == wanted) return number(point["background"]);
  for (size_t i = 1; i < curve.signal.size(); ++i) {
    if (curve.signal[i] < wanted) continue;
    const double span = curve.signal[i] - curve.signal[i - 1];
    const double low = curve.background[i - 1], high = curve.background[i];
    return span > 0 ? low + (high - low) * (wanted - curve.signal[i - 1]) / span : low;
  }
  return {};
}

HtmlCell rejection(const RocCurve& curve, double wanted) {
  const auto background = background_at(curve, wanted);
  if (!background) return "–";
  const auto rows = curve.background_rows;
  if (*background <= 0 || (rows && *background * *rows < 1))
    return rows ? HtmlCell("> " + shown::whole(rows), shown::key(rows)) : HtmlCell("∞");
  const double value = 1 / *background;
  const std::string text = value < 10    ? fmt::format("{:.2f}", value)
                           : value < 100 ? fmt::format("{:.1f}", value)
                                         : shown::whole(value);
  return {(rows && *background * *rows < 10 ? "≈ " : "") + text, shown::key(value)};
}

std::string quality_table(const Value& found, const Value& classes,
                          const std::vector<RocCurve>& curves) {
  const List &precision = items(found["precision"]), &recall = items(found["recall"]);
  const size_t counted = std::min(precision.size(), recall.size());
  const size_t rows = counted > 0 ? counted : curves.size();
  if (rows == 0) return "";
  HtmlTable table{"Each class against the rest", {"class"}, {}, {}, {false}};
  table.id = "quality";
  const auto column = [&](const std::string& name) {
    table.header.push_back(name);
    table.numeric.push_back(true);
  };
  if (counted > 0)
    for (const char* name : {"precision", "recall", "F1"}) column(name);
  if (!curves.empty()) {
    column("AUC");
    for (const double e : efficiencies) column(fmt::format("1/εB at εS = {:.0f} %", 100 * e));
  }
  for (size_t i = 0; i < rows; ++i) {
    std::vector<HtmlCell> row = {counted > 0 ? class_name(classes, i) : curves[i].name};
    if (counted > 0) {
      const auto p = number(precision[i]), r = number(recall[i]);
      std::optional<double> f1;
      if (p && r && *p + *r > 0) f1 = 2 * *p * *r / (*p + *r);
      for (const auto& share : {p, r, f1}) row.emplace_back(shown::percent(share));
    }
    if (!curves.empty()) {
      const bool has = i < curves.size();
      row.emplace_back(has && curves[i].auc ? figure_text(*curves[i].auc) : "–", "", "auc");
      for (const double e : efficiencies) row.push_back(has ? rejection(curves[i], e) : "–");
    }
    table.rows.push_back(std::move(row));
  }
  std::string html = html_table(table);
  if (!curves.empty())
    html += note_html(
        "1/εB: background rejection, the number of background rows for each one that is kept while "
        "the cut keeps the share εS of the signal. ≈: from fewer than ten background rows; >: none "
        "was left.");
  return html;
}

std::string figure_name(const std::string& key) {
  static const std::map<std::string, std::string> names = {
      {"mae", "MAE"}, {"rmse", "RMSE"}, {"mse", "MSE"}, {"r2", "R²"}};
  const auto name = names.find(key);
  return name == names.end() ? replace_all(key, "_", " ") : name->second;
}

// Predicted against true numbers, and how far the one is from the other.
std::string prediction_charts(const Value& found) {
  const Value& predictions = found["predictions"];
  if (!predictions.is_dict()) return "";
  std::string charts;
  const List& outputs = items(predictions["outputs"]);
  for (size_t o = 0; o < outputs.size(); ++o) {
    if (!outputs[o].is_dict()) continue;
    const List &truth = items(outputs[o]["true"]), &guess = items(outputs[o]["predicted"]);
    const std::string which = outputs.size() > 1 ? fmt::format(", output {}", o) : "";
    ScatterChart both, rest;
    both.title = "Predicted against true" + which;
    rest.title = "Residuals" + which;
    both.x = rest.x = {"true", AxisKind::linear, NumberText::plain};
    both.y = {"predicted", AxisKind::linear, NumberText::plain};
    rest.y = {"predicted - true", AxisKind::linear, NumberText::plain};
    for (size_t i = 0; i < std::min(truth.size(), guess.size()); ++i) {
      const auto t = number(truth[i]), p = number(guess[i]);
      if (!t || !p) continue;
      both.points.push_back({*t, *p});
      rest.points.push_back({*t, *p - *t});
    }
    if (both.points.empty()) continue;
    charts += scatter_chart(both) + scatter_chart(rest);
  }
  const auto rows = number(predictions["rows"]), all = number(found["rows"]);
  if (charts.empty()) return "";
  return "<div class=\"charts\">" + charts + "</div>" +
         (rows && all && *rows < *all
              ? note_html(fmt::format("{} of {} rows are drawn, evenly spaced.",
                                      shown::whole(*rows), shown::whole(*all)))
              : "");
}

// What a task measures beside accuracy and loss, under its own name.
std::string other_metrics(const Value& found) {
  static const std::set<std::string> elsewhere = {
      "accuracy",  "loss",   "rows",    "split", "classes",   "confusion",
      "precision", "recall", "support", "roc",   "loss_name", "predictions"};
  std::vector<std::pair<std::string, std::string>> facts;
  const std::string loss = shown::word(found["loss_name"]);
  if (number(found["loss"]) && !loss.empty())
    facts.emplace_back("loss: " + figure_name(loss), shown::brief(number(found["loss"]), 5));
  for (const auto& [key, value] : found.as_dict()) {
    if (elsewhere.count(key)) continue;
    const std::string label = figure_name(key);
    const bool share = key.find("accuracy") != std::string::npos;
    if (const auto one = number(value))
      facts.emplace_back(label, share ? shown::percent(one) : shown::brief(one, 5));
    else if (key == "top_k" && value.is_dict())
      for (const auto& [k, v] : value.as_dict())
        facts.emplace_back(fmt::format("accuracy among the first {} (ties count against it)", k),
                           shown::percent(number(v)));
  }
  return facts_html(facts, "metrics");
}

}  // namespace

std::optional<PagePart> evaluation_part(const RunData& run) {
  const Value& found = run.run["evaluation"];
  if (!found.is_dict()) return {};
  const Value& own = found["classes"];
  const Value& classes = own.is_list() ? own : shown::entry(run.run["dataset"], "classes");
  const std::vector<RocCurve> curves = roc_curves(found, classes);
  const std::string split = shown::word(found["split"]);
  const std::string html = "<div class=\"charts\"><div>" +
                           confusion_matrix(found["confusion"], classes) + "</div><div>" +
                           roc_chart(curves) + "</div></div>" + prediction_charts(found) +
                           quality_table(found, classes, curves) + other_metrics(found);
  return PagePart{
      "evaluation",
      split.empty() ? "Evaluation (split not recorded)" : "Evaluation on the " + split + " split",
      html};
}

}  // namespace mase
