// SPDX-License-Identifier: Apache-2.0
#include "mase/report/plain_page.h"

#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <tuple>

#include "mase/base/figure.h"
#include "mase/base/text.h"
#include "mase/report/charts.h"
#include "mase/report/html.h"
#include "mase/report/plot.h"

namespace mase {
namespace {

std::optional<double> number_of(const Value& value) {
  if (!value.is_number()) return {};
  const double number = value.as_double();
  return std::isfinite(number) ? std::optional(number) : std::nullopt;
}

std::string text_in(const Value& value) {
  return value.is_string() ? value.as_string() : std::string();
}

std::string share_text(const std::optional<double>& share) {
  return share ? figure_text(100 * *share, 2) + " %" : "–";
}

const Value& entry_of(const Value& dict, const char* key) {
  static const Value none;
  return dict.is_dict() ? dict[key] : none;
}

std::string split_of(const Value& evaluation) {
  const std::string split = text_in(entry_of(evaluation, "split"));
  return split.empty() ? "split not recorded" : split;
}

std::vector<std::string> result_cells(const RunData& run) {
  const Value& best = run.run["best"];
  const auto loss = number_of(entry_of(best, "val_loss_epoch"));
  return {share_text(number_of(entry_of(best, "val_acc_epoch"))), loss ? short_number(*loss) : "–",
          share_text(accuracy_on(run, "test"))};
}

const std::vector<std::string> result_names = {
    "validation accuracy at the best epoch", "validation loss at the best epoch", "test accuracy"};

std::string runs_table(const std::vector<RunData>& runs, const std::vector<std::string>& links,
                       const std::string& caption) {
  HtmlTable table{caption, {"run"}, {}, links, {false, true, true, true}};
  for (const std::string& name : result_names) table.header.push_back(name);
  for (const char* name : {"model", "data set", "status"}) table.header.emplace_back(name);
  for (const RunData& run : runs) {
    std::vector<std::string> row{run.name};
    for (std::string& cell : result_cells(run)) row.push_back(std::move(cell));
    row.push_back(text_in(entry_of(run.run["model"], "name")));
    row.push_back(text_in(entry_of(run.run["dataset"], "name")));
    row.push_back(text_in(run.run["status"]));
    table.rows.push_back(std::move(row));
  }
  return html_table(table);
}

std::string figures_table(const RunData& run) {
  HtmlTable table{"Figures", {"figure", "value"}, {}, {}, {false, true}};
  const std::vector<std::string> results = result_cells(run);
  for (size_t i = 0; i + 1 < results.size(); ++i)
    if (results[i] != "–") table.rows.push_back({result_names[i], results[i]});
  const Value& evaluations = run.run["evaluations"];
  const Value& evaluation = run.run["evaluation"];
  if (evaluations.is_dict() && evaluations.as_dict().size() > 0) {
    for (const auto& [split, found] : evaluations.as_dict())
      if (const auto accuracy = number_of(entry_of(found, "accuracy")))
        table.rows.push_back({fmt::format("accuracy ({})", split), share_text(accuracy)});
  } else if (const auto accuracy = number_of(entry_of(evaluation, "accuracy")))
    table.rows.push_back(
        {fmt::format("accuracy ({})", split_of(evaluation)), share_text(accuracy)});
  const Value& change = entry_of(run.run["transform"], "accuracy");
  for (const char* when : {"before", "after"})
    if (const auto accuracy = number_of(entry_of(change, when)))
      table.rows.push_back(
          {fmt::format("accuracy {} ({})", when, split_of(change)), share_text(accuracy)});
  for (const char* key : {"kind", "status", "started"})
    if (!text_in(run.run[key]).empty()) table.rows.push_back({key, text_in(run.run[key])});
  return table.rows.empty() ? "" : html_table(table);
}

std::string curve_pictures(const RunData& run) {
  std::string html;
  for (const auto& [quantity, title, text] :
       {std::tuple{"loss", "Loss", NumberText::plain}, {"acc", "Accuracy", NumberText::percent}}) {
    BandChart chart{title, {"step", AxisKind::linear, NumberText::whole}, {title}, {}};
    chart.y.text = text;
    if (text == NumberText::percent) chart.y.kind = AxisKind::linear;
    const auto add = [&](const std::string& name, const std::string& shown) {
      const Curve* curve = run.curve(name);
      if (curve) chart.series.push_back({shown, curve->x, curve->y});
      return curve != nullptr;
    };
    if (!add(fmt::format("train_{}_epoch", quantity), "train, epoch mean"))
      add(fmt::format("train_{}_logged", quantity), "train, logged steps");
    add(fmt::format("val_{}_epoch", quantity), "validation");
    if (!chart.series.empty()) html += band_chart(chart);
  }
  return html;
}

}  // namespace

std::string plain_runs(const std::vector<RunData>& runs) {
  if (runs.size() != 1) return runs_table(runs, {}, fmt::format("{} runs", runs.size()));
  return figures_table(runs.front()) + curve_pictures(runs.front());
}

std::string plain_list(const std::vector<ListedRun>& listed) {
  std::vector<RunData> runs;
  std::vector<std::string> links;
  for (const ListedRun& one : listed) {
    runs.push_back(one.run);
    links.push_back("run?" + run_query({one.id}));
  }
  return runs_table(runs, links, fmt::format("{} runs", runs.size()));
}

std::string parts_page(const std::string& title, const std::string& subtitle,
                       const std::vector<PagePart>& parts, const std::string& generator) {
  std::string body = "<header class=\"top\"><div class=\"title\"><h1>" + escaped(title) +
                     "</h1></div><p class=\"subtitle\">" + escaped(subtitle) + "</p></header>";
  if (parts.size() > 2) {
    body += "<nav aria-label=\"parts of this page\">";
    for (const PagePart& part : parts)
      body += "<a href=\"#" + escaped(part.id) + "\">" + escaped(part.title) + "</a>";
    body += "</nav>";
  }
  body += "<main>";
  for (const PagePart& part : parts)
    body += "<section class=\"card\" id=\"" + escaped(part.id) + "\"><h2>" + escaped(part.title) +
            "</h2>" + part.html + "</section>";
  body += "</main><footer>" + escaped(generator) + "</footer>";
  return document_html(title,
                       "default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
                       "base-uri 'none'; form-action 'none'",
                       body);
}

}  // namespace mase
