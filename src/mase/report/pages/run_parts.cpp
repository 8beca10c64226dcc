// SPDX-License-Identifier: Apache-2.0
#include "mase/report/pages/run_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "mase/base/text.h"
#include "mase/report/charts/charts.h"
#include "mase/report/pages/html.h"
#include "mase/report/pages/shown.h"

namespace mase {
namespace {

using shown::entry;
using shown::items;
using shown::number;
using shown::word;

std::string tile(const std::string& label, const std::string& value, const std::string& detail) {
  if (value.empty() || value == "–") return "";
  return "<div class=\"tile\"><div class=\"tile-label\">" + escaped(label) +
         "</div><div class=\"tile-value\">" + escaped(value) + "</div><div class=\"tile-detail\">" +
         escaped(detail) + "</div></div>";
}

std::string best_epoch(const RunData& run, const std::string& name) {
  const Curve* curve = run.curve(name);
  const auto best = best_of(run, name);
  if (!curve || !best) return "";
  const auto at = std::find(curve->y.begin(), curve->y.end(), *best) - curve->y.begin();
  const auto mark =
      std::find(run.epoch_steps.begin(), run.epoch_steps.end(), curve->x[static_cast<size_t>(at)]);
  if (mark == run.epoch_steps.end()) return "";
  return fmt::format("epoch {}", run.epochs[static_cast<size_t>(mark - run.epoch_steps.begin())]);
}

std::string rows_text(const Value& found) {
  const auto rows = number(entry(found, "rows"));
  return rows ? shown::whole(rows) + " rows" : "";
}

std::string joined(std::vector<std::string> parts, const char* between = ", ") {
  std::erase_if(parts, [](const std::string& part) { return part.empty() || part == "–"; });
  return join(parts, between);
}

std::optional<PagePart> figures_part(const RunData& run) {
  const Value &best = run.run["best"], &speed = run.run["speed"], &model = run.run["model"];
  const Value& change = entry(run.run["transform"], "accuracy");
  std::string kept;
  if (const auto epoch = number(entry(best, "epoch")))
    kept =
        joined({"epoch " + shown::whole(epoch),
                word(entry(best, "monitor")).empty() ? "" : "by " + word(entry(best, "monitor"))});
  const auto accuracy = best_of(run, "val_acc_epoch"),
             kept_accuracy = at_best_epoch(run, "val_acc_epoch");
  std::string html =
      tile("Best validation accuracy", shown::percent(accuracy), best_epoch(run, "val_acc_epoch"));
  if (kept_accuracy != accuracy)
    html += tile("Validation accuracy at the best epoch", shown::percent(kept_accuracy), kept);
  html += tile("Best validation loss", shown::brief(best_of(run, "val_loss_epoch")),
               best_epoch(run, "val_loss_epoch"));
  for (const auto& [split, found] : evaluations_of(run)) {
    const auto measured = number(entry(found, "accuracy")), loss = number(entry(found, "loss"));
    // The best epoch's validation figure is shown once, also where it was measured again.
    if (split == "validation" && measured == kept_accuracy) continue;
    const std::string on = split.empty() ? ", split not recorded" : " on the " + split + " split";
    if (measured)
      html += tile("Accuracy" + on, shown::percent(measured),
                   joined({loss ? "loss " + shown::brief(loss) : "", rows_text(found)}));
    else
      html += tile("Loss" + on, shown::brief(loss), rows_text(found));
  }
  const auto before = number(entry(change, "before")), after = number(entry(change, "after"));
  const std::string split = word(entry(change, "split"));
  const std::string on = split.empty() ? "split not recorded" : split + " split";
  html += tile("Accuracy before", shown::percent(before), on);
  html += tile("Accuracy after", shown::percent(after),
               before && after ? shown::points(before, after) + ", " + on : on);
  html += tile("Parameters", shown::whole(number(entry(model, "parameters"))),
               word(entry(model, "name")));
  const auto steps_alone = number(entry(speed, "step_seconds"));
  html += tile(
      "Time", shown::duration(number(entry(speed, "seconds"))),
      steps_alone ? shown::duration(steps_alone) + " in steps, the rest validation and files" : "");
  const auto rate = number(entry(speed, "steps_per_second"));
  html += tile(steps_alone ? "Samples per second, steps alone" : "Samples per second",
               shown::whole(number(entry(speed, "samples_per_second"))),
               rate ? shown::whole(rate) + " steps/s" : "");
  if (html.empty()) return {};
  return PagePart{"figures", "", "<div class=\"tiles\">" + html + "</div>"};
}

// What was set comes first; what was left at its default is folded away.
std::optional<PagePart> options_part(const RunData& run) {
  const auto given = [](const Value& value) { return value.is_null() ? "" : shown::text(value); };
  const auto path = [](const Value& value) {
    const std::string whole = value.is_null() ? "" : shown::text(value);
    const std::string name = value.is_null() ? "" : shown::file_name(value);
    return HtmlCell(name, "", "", name == whole ? "" : whole);
  };
  HtmlTable set{"Options that were set", {"option", "value", "default", "set by"}, {}};
  HtmlTable rest{"Options at their defaults", {"option", "value"}, {}};
  set.id = "option-table";
  for (const Value& option : items(run.run["options"])) {
    if (!option.is_dict()) continue;
    const std::string effective = given(option["effective"]), usual = given(option["default"]);
    const std::string flag = given(option["flag"]), config = given(option["config"]);
    if (effective == usual && flag.empty() && config.empty()) {
      rest.rows.push_back({shown::text(option["name"]), path(option["effective"])});
      continue;
    }
    HtmlCell value = path(option["effective"]);
    if (effective != usual) value.style = "changed";
    set.rows.push_back({shown::text(option["name"]), value, path(option["default"]),
                        !flag.empty()     ? "flag"
                        : !config.empty() ? "config"
                                          : ""});
  }
  if (set.rows.empty() && rest.rows.empty()) return {};
  std::string html = set.rows.empty() ? note_html("Nothing was set: every option has its default.")
                                      : html_table(set);
  if (!rest.rows.empty())
    html += folded_html(fmt::format("{} options at their defaults", rest.rows.size()),
                        html_table(rest));
  return PagePart{"options", "Options", html};
}

std::optional<PagePart> model_part(const RunData& run) {
  HtmlTable table{"Layers of the network",
                  {"layer", "type", "input", "output", "parameters", "MACs per sample"},
                  {},
                  {},
                  {false, false, false, false, true, true}};
  table.id = "summary-table";
  double parameters = 0, macs = 0;
  for (const Value& row : items(run.run["summary"])) {
    if (!row.is_dict()) continue;
    parameters += number(row["parameters"]).value_or(0);
    macs += number(row["macs"]).value_or(0);
    table.rows.push_back({shown::text(row["layer"]), shown::text(row["type"]),
                          shown::shape(row["input_shape"]), shown::shape(row["output_shape"]),
                          shown::whole(number(row["parameters"])),
                          shown::whole(number(row["macs"]))});
  }
  if (table.rows.empty()) return {};
  return PagePart{
      "summary", "Model",
      html_table(table) + note_html(fmt::format("In all {} parameters, {} MACs per sample.",
                                                shown::whole(parameters), shown::whole(macs)))};
}

std::string split_rows(const Value& data) {
  std::vector<std::string> parts;
  for (const char* split : {"train", "validation", "test"})
    if (const auto rows = number(entry(data, (std::string(split) + "_rows").c_str())))
      parts.push_back(fmt::format("{} {}", split, shown::whole(rows)));
  return join(parts, ", ");
}

std::optional<PagePart> about_part(const RunData& run) {
  const Value &info = run.run, &data = info["dataset"], &machine = info["machine"];
  std::vector<std::string> command;
  for (const Value& one : items(info["command"])) command.push_back(shown::text(one));
  const auto cores = number(entry(machine, "cores"));
  const std::string html = facts_html(
      {{"folder", run.folder},
       {"command", join(command, " ")},
       {"started", shown::date(info["started"])},
       {"finished", shown::date(info["finished"])},
       {"seed", info["seed"].is_int() ? shown::text(info["seed"]) : ""},
       {"data set", data_name(info)},
       {"rows", split_rows(data)},
       {"notice", word(entry(data, "notice"))},
       {"identity", word(entry(data, "identity"))},
       {"machine", joined({word(entry(machine, "cpu")), cores ? shown::whole(cores) + " cores" : "",
                           word(entry(machine, "system"))})},
       {"version", word(info["version"])},
       {"best checkpoint", word(entry(info["best"], "path"))}});
  if (html.empty()) return {};
  return PagePart{"about", "About this run", html};
}

}  // namespace

std::string data_name(const Value& run) {
  const Value& data = run["dataset"];
  return joined({word(entry(data, "name")), word(entry(data, "variant"))});
}

std::map<std::string, Value> evaluations_of(const RunData& run) {
  std::map<std::string, Value> found;
  const auto add = [&](const std::string& split, const Value& one) {
    if (number(entry(one, "accuracy")) || number(entry(one, "loss"))) found[split] = one;
  };
  const Value& all = run.run["evaluations"];
  if (all.is_dict())
    for (const auto& [split, one] : all.as_dict()) {
      const std::string said = word(entry(one, "split"));
      add(said.empty() ? split : said, one);
    }
  if (run.run["evaluation"].is_dict())
    add(word(run.run["evaluation"]["split"]), run.run["evaluation"]);
  return found;
}

std::optional<double> best_of(const RunData& run, const std::string& name) {
  const Curve* curve = run.curve(name);
  std::optional<double> best;
  if (!curve) return best;
  const bool low = name.find("loss") != std::string::npos;
  for (const double value : curve->y)
    if (std::isfinite(value) && (!best || (low ? value < *best : value > *best))) best = value;
  return best;
}

std::optional<double> at_best_epoch(const RunData& run, const std::string& figure) {
  return number(entry(run.run["best"], figure.c_str()));
}

std::optional<PagePart> learned_part(const RunData& run) {
  ScatterChart chart;
  chart.title = "Accuracy against effective bit operations";
  chart.x = {"EBOPs per sample", AxisKind::automatic, NumberText::plain};
  chart.y = {"accuracy", AxisKind::linear, NumberText::percent};
  HtmlTable table{"Networks of the front",
                  {"network", "epoch", "EBOPs", "weights left", "validation accuracy",
                   "test accuracy", "test rows", "test rows with overflow"},
                  {},
                  {},
                  {false, true, true, true, true, true, true, true}};
  table.id = "front-table";
  for (const Value& one : items(run.run["front"])) {
    if (!one.is_dict()) continue;
    const auto ebops = number(one["ebops"]), validation = number(one["val_accuracy"]),
               test = number(one["test_accuracy"]);
    const std::string name = shown::file_name(one["path"]);
    for (const auto& [series, value] : {std::pair{"validation", validation}, {"test", test}}) {
      if (!ebops || !value) continue;
      ScatterPoint point{*ebops, *value, series, {}};
      point.text.hover = fmt::format("{}: {} EBOPs, {} {}", name, shown::whole(ebops),
                                     shown::percent(value), series);
      chart.points.push_back(std::move(point));
    }
    table.rows.push_back({name, shown::whole(number(one["epoch"])), shown::whole(ebops),
                          shown::whole(number(one["weights"])), shown::percent(validation),
                          shown::percent(test), shown::whole(number(one["test_rows"])),
                          shown::whole(number(one["test_rows_with_overflow"]))});
  }
  if (table.rows.empty()) return {};
  return PagePart{"front", "Front of learned widths", scatter_chart(chart) + html_table(table)};
}

PageFrame run_frame(const RunData& run) {
  const Value& info = run.run;
  PageFrame frame;
  frame.title = run.name;
  frame.subtitle = joined({word(info["kind"]), word(entry(info["model"], "name")), data_name(info),
                           shown::date(info["started"])},
                          " · ");
  const Value& data = info["dataset"];
  const std::string identity = word(entry(data, "identity")).substr(0, 15);
  frame.measured = data_name(info);
  if (!frame.measured.empty()) {
    if (const std::string rows = split_rows(data); !rows.empty())
      frame.measured += " (rows: " + rows + ")";
    if (!identity.empty()) frame.measured += ", " + identity;
    if (const std::string cpu = word(entry(info["machine"], "cpu")); !cpu.empty())
      frame.measured += "; " + cpu;
  }
  frame.status = word(info["status"]);
  return frame;
}

std::vector<PagePart> run_parts(const RunData& run) {
  std::vector<PagePart> parts;
  const auto add = [&](std::optional<PagePart> part) {
    if (part) parts.push_back(std::move(*part));
  };
  if (!run.problem.empty())
    parts.push_back(
        {"problem", "",
         "<p class=\"trouble\">Could not read all of this run: " + escaped(run.problem) + "</p>"});
  // The front of learned widths is the result of such a run; no single epoch's figure is.
  add(learned_part(run));
  if (parts.empty() || parts.back().id != "front") add(figures_part(run));
  add(curves_part(run));
  add(evaluation_part(run));
  for (PagePart& part : transform_parts(run)) parts.push_back(std::move(part));
  add(model_part(run));
  add(options_part(run));
  add(about_part(run));
  return parts;
}

}  // namespace mase
