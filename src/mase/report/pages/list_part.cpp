// SPDX-License-Identifier: Apache-2.0
#include "mase/report/pages/list_part.h"

#include <fmt/format.h>

#include <algorithm>

#include "mase/base/text.h"
#include "mase/report/pages/html.h"
#include "mase/report/pages/run_parts.h"
#include "mase/report/pages/shown.h"

namespace mase {
namespace {

using shown::entry;
using shown::number;

struct ListColumn {
  const char* title;
  HtmlCell (*of)(const RunData&);
};

HtmlCell share_cell(const std::optional<double>& value) {
  return value ? HtmlCell(shown::percent(value), shown::key(value)) : HtmlCell("");
}

std::optional<double> changed(const RunData& run, const char* when) {
  return number(entry(entry(run.run["transform"], "accuracy"), when));
}

// What has neither a best epoch nor the test rows: figures of other rows, fronts of learned widths.
HtmlCell other_result(const RunData& run) {
  std::vector<std::string> parts;
  for (const auto& [split, found] : evaluations_of(run)) {
    const auto accuracy = number(entry(found, "accuracy")), loss = number(entry(found, "loss"));
    const std::string on = split.empty() ? "split not recorded" : split;
    if (accuracy && split != "test" && split != "validation")
      parts.push_back(fmt::format("{} ({})", shown::percent(accuracy), on));
    else if (!accuracy && loss)
      parts.push_back(fmt::format("loss {} ({})", shown::brief(loss), on));
  }
  const Value& front = run.run["front"];
  if (const auto count = number(entry(front, "count")))
    parts.push_back(fmt::format("{} networks, {} to {} EBOPs, up to {} (validation)",
                                shown::whole(count), shown::whole(number(front["least"])),
                                shown::whole(number(front["most"])),
                                shown::percent(number(front["accuracy"]))));
  return join(parts, ", ");
}

const ListColumn list_columns[] = {
    {"validation accuracy, best epoch",
     [](const RunData& run) { return share_cell(at_best_epoch(run, "val_acc_epoch")); }},
    {"validation loss, best epoch",
     [](const RunData& run) {
       const auto loss = at_best_epoch(run, "val_loss_epoch");
       return loss ? HtmlCell(shown::brief(loss), shown::key(loss)) : HtmlCell("");
     }},
    {"test accuracy", [](const RunData& run) { return share_cell(accuracy_on(run, "test")); }},
    {"before", [](const RunData& run) { return share_cell(changed(run, "before")); }},
    {"after", [](const RunData& run) { return share_cell(changed(run, "after")); }},
    {"change",
     [](const RunData& run) {
       const auto before = changed(run, "before"), after = changed(run, "after");
       if (!before || !after) return HtmlCell("");
       return HtmlCell(shown::points(before, after), shown::key(*after - *before));
     }},
    {"other result", other_result},
};

Value evaluation_outline(const Value& found) {
  Dict outline;
  for (const char* key : {"split", "accuracy", "loss"}) outline.set(key, entry(found, key));
  return outline;
}

Value front_outline(const List& front) {
  std::optional<double> least, most, best;
  for (const Value& one : front) {
    const auto ebops = number(entry(one, "ebops")), accuracy = number(entry(one, "val_accuracy"));
    if (ebops && (!least || *ebops < *least)) least = ebops;
    if (ebops && (!most || *ebops > *most)) most = ebops;
    if (accuracy && (!best || *accuracy > *best)) best = accuracy;
  }
  if (!least || !best) return {};
  return Dict{{"count", static_cast<int64_t>(front.size())},
              {"least", *least},
              {"most", *most},
              {"accuracy", *best}};
}

}  // namespace

Value run_outline(const Value& run) {
  Dict outline;
  for (const char* key : {"kind", "status", "started", "model", "best", "speed"})
    if (const Value* found = run.as_dict().find(key)) outline.set(key, *found);
  const Value& data = run["dataset"];
  if (data.is_dict())
    outline.set("dataset", Dict{{"name", data["name"]}, {"variant", data["variant"]}});
  if (run["evaluation"].is_dict()) outline.set("evaluation", evaluation_outline(run["evaluation"]));
  if (run["evaluations"].is_dict()) {
    Dict splits;
    for (const auto& [split, found] : run["evaluations"].as_dict())
      if (found.is_dict()) splits.set(split, evaluation_outline(found));
    outline.set("evaluations", std::move(splits));
  }
  const Value& transform = run["transform"];
  if (transform.is_dict() && transform["accuracy"].is_dict())
    outline.set("transform", Dict{{"accuracy", transform["accuracy"]}});
  if (run["front"].is_list()) outline.set("front", front_outline(run["front"].as_list()));
  return outline;
}

PagePart list_part(const std::vector<ListedRun>& runs, const std::string& folder) {
  if (runs.empty())
    return {"runs", "Runs", note_html("No runs here yet. The page looks again every few seconds.")};
  HtmlTable table{fmt::format("{} runs under {}", runs.size(), folder), {"run"}, {}, {}, {false}};
  table.id = "run-list";
  table.choose = true;
  // A column that no run of the list fills is left out.
  std::vector<const ListColumn*> columns;
  for (const ListColumn& column : list_columns)
    if (std::any_of(runs.begin(), runs.end(),
                    [&](const ListedRun& one) { return !column.of(one.run).text.empty(); }))
      columns.push_back(&column);
  for (const ListColumn* column : columns) {
    table.header.emplace_back(column->title);
    table.numeric.push_back(column->of != other_result);
    if (std::string(column->title) == "before")
      table.caption += "; before and after: accuracy of a transformed network";
  }
  for (const char* name : {"model", "data set", "kind", "status", "started", "time"})
    table.header.emplace_back(name);
  const bool problems = std::any_of(runs.begin(), runs.end(),
                                    [](const ListedRun& one) { return !one.run.problem.empty(); });
  if (problems) table.header.emplace_back("problem");
  for (const ListedRun& one : runs) {
    const Value& info = one.run.run;
    std::vector<HtmlCell> row = {{one.run.name, "", "", one.id}};
    for (const ListColumn* column : columns) row.push_back(column->of(one.run));
    row.emplace_back(shown::word(entry(info["model"], "name")));
    row.emplace_back(data_name(info));
    row.emplace_back(shown::word(info["kind"]));
    const std::string status = shown::word(info["status"]);
    row.emplace_back(status, "", status.empty() ? "" : "status " + status_class(status));
    row.emplace_back(shown::date(info["started"]));
    const auto seconds = number(entry(info["speed"], "seconds"));
    row.emplace_back(seconds ? shown::duration(seconds) : "", shown::key(seconds));
    if (problems) row.emplace_back(one.run.problem);
    table.rows.push_back(std::move(row));
    table.links.push_back("run?" + run_query({one.id}));
    table.chosen_ids.push_back(one.id);
  }
  // Without a script the boxes are hidden and the form sends nothing.
  return {
      "runs", "Runs",
      "<form action=\"run\" method=\"get\" id=\"compare-form\">" + html_table(table) + "</form>"};
}

}  // namespace mase
