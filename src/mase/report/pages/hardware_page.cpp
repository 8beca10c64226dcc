// SPDX-License-Identifier: Apache-2.0
#include "mase/report/pages/hardware_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>

#include "mase/base/figure.h"
#include "mase/base/file.h"
#include "mase/base/text.h"
#include "mase/report/charts/charts.h"
#include "mase/report/charts/datapath_chart.h"
#include "mase/report/pages/html.h"
#include "mase/report/pages/published_hardware.h"

namespace mase {
namespace {

namespace fs = std::filesystem;

constexpr size_t most_source_lines = 20000;  // a longer text is shown where the bill leads to

const Value& entry_in(const Value& dict, const char* key) {
  static const Value none;
  return dict.is_dict() ? dict[key] : none;
}

const List& items_of(const Value& value) {
  static const List none;
  return value.is_list() ? value.as_list() : none;
}

std::optional<double> figure(const Value& dict, const char* key) {
  const Value& value = entry_in(dict, key);
  if (!value.is_number() || !std::isfinite(value.as_double())) return {};
  return value.as_double();
}

std::string words(const Value& dict, const char* key) {
  const Value& value = entry_in(dict, key);
  return value.is_string() ? value.as_string() : "";
}

std::string number_text(const std::optional<double>& value, const char* format = "{:.0f}") {
  return value ? fmt::format(fmt::runtime(format), *value) : "–";
}

std::string accuracy_text(const std::optional<double>& value) {
  return value ? figure_text(*value) : "–";
}

std::string sentence(const std::string& text) { return "<p>" + escaped(text) + "</p>"; }

// What synthesis counted where it was run, else the estimate; and which of them it is.
struct CostFigure {
  std::optional<double> luts, levels;
  std::string kind;
};
CostFigure cost_figure(const DesignData& design) {
  if (figure(design.synthesis, "luts"))
    return {figure(design.synthesis, "luts"), figure(design.synthesis, "levels"),
            "Yosys " + words(design.synthesis, "flow")};
  const Value& estimate = entry_in(design.manifest, "estimate");
  return {figure(estimate, "luts"), figure(estimate, "levels"), "estimate, not synthesised"};
}

std::optional<double> accuracy_figure(const DesignData& design) {
  return figure(entry_in(design.manifest, "accuracy"), "value");
}

PagePart checks_part(const std::vector<DesignData>& designs) {
  std::string html;
  for (const DesignData& design : designs) {
    HtmlTable table{designs.size() > 1 ? design.name : "Checks", {"check", "result"}, {}};
    const Value& compared = entry_in(design.manifest, "compared");
    table.rows.push_back({"engine and integers", fmt::format("{} ({})", words(compared, "engine"),
                                                             words(compared, "rows"))});
    if (const auto rows = figure(design.simulation, "rows"))
      table.rows.push_back(
          {"simulation",
           fmt::format("{}: {:.0f} rows, {} mismatches", words(design.simulation, "simulator"),
                       *rows, number_text(figure(design.simulation, "mismatches")))});
    else
      table.rows.push_back({"simulation", "not run (ch simulate)"});
    if (const auto rows = figure(design.cpp_check, "rows"))
      table.rows.push_back({"C++ header, not the SystemVerilog",
                            fmt::format("{:.0f} rows, {} mismatches", *rows,
                                        number_text(figure(design.cpp_check, "mismatches")))});
    table.rows.push_back({"proved", words(design.manifest, "proved")});
    if (const std::string text = words(entry_in(design.manifest, "overflow"), "text");
        !text.empty())
      table.rows.push_back({"overflow", text});
    html += html_table(table);
  }
  return {"checks", "What was proved, what compared", html};
}

// Its outputs, with what they are where the manifest says it.
std::string what_it_gives(const DesignData& design) {
  const size_t inputs = items_of(entry_in(design.manifest, "inputs")).size(),
               outputs = items_of(entry_in(design.manifest, "outputs")).size();
  const Value& options = entry_in(design.manifest, "options");
  const Value& argmax = entry_in(options, "argmax");
  std::string text = argmax.is_bool() && argmax.as_bool()
                         ? fmt::format("the class of {} inputs", inputs)
                         : fmt::format("{} outputs of {} inputs", outputs, inputs);
  if (const Value& valid = entry_in(design.manifest, "valid"); valid.is_bool() && valid.as_bool())
    text += ", valid bit";
  return text;
}

PagePart designs_part(const std::vector<DesignData>& designs) {
  HtmlTable table{"Designs",
                  {"design", "style", "gives", "accuracy", "LUTs", "levels", "figures are",
                   "ns (model)", "register bits", "latency, cycles", "a row every, cycles"},
                  {},
                  {},
                  {false, false, false, true, true, true, false, true, true, true, true}};
  std::map<std::string, std::vector<std::string>> named_by_rows;
  std::set<std::string> given;
  for (const DesignData& design : designs) {
    const CostFigure cost = cost_figure(design);
    const Value& estimate = entry_in(design.manifest, "estimate");
    given.insert(what_it_gives(design));
    table.rows.push_back({design.name, words(design.manifest, "style"), what_it_gives(design),
                          accuracy_text(accuracy_figure(design)), number_text(cost.luts),
                          number_text(cost.levels), cost.kind,
                          number_text(figure(estimate, "delay_ns"), "{:.1f}"),
                          number_text(figure(estimate, "registers")),
                          number_text(figure(design.manifest, "latency_cycles")),
                          number_text(figure(design.manifest, "initiation_interval"))});
    if (const std::string rows = words(entry_in(design.manifest, "accuracy"), "rows");
        !rows.empty())
      named_by_rows[rows].push_back(design.name);
  }
  std::string html = html_table(table);
  if (given.size() > 1)
    html += sentence(
        "These designs do not give the same: their ports differ, and so does what their LUTs, "
        "levels and registers are spent on.");
  for (const auto& [rows, names] : named_by_rows)
    html += sentence(fmt::format("Accuracy{} on {}, by the integers.",
                                 named_by_rows.size() > 1 ? " of " + join(names, ", ") : "", rows));
  if (named_by_rows.size() > 1)
    html += sentence("Accuracies on different rows are not comparable.");
  html += sentence("Delays are a model, not placed: a fixed time for each level.");
  return {"designs", designs.size() > 1 ? "Designs" : "Design", html};
}

std::optional<PagePart> datapath_part(const DesignData& design, const std::string& id,
                                      const std::string& title) {
  const Value& estimate = entry_in(design.manifest, "estimate");
  std::vector<DatapathLayer> layers;
  double at = 0;
  HtmlTable table{"Layers",
                  {"layer", "LUTs (estimate)", "share", "levels", "adders", "results", "bits"},
                  {},
                  {},
                  {false, true, true, true, true, true, true}};
  const double all = figure(estimate, "luts").value_or(0);
  for (const Value& one : items_of(entry_in(estimate, "layers"))) {
    DatapathLayer layer;
    layer.name = words(one, "name");
    layer.luts = figure(one, "luts").value_or(0);
    layer.begin = at;
    at += std::max(0.0, figure(one, "levels").value_or(0));
    layer.end = at;
    int64_t results = 0;
    double least = 0, most = 0;
    for (const Value& neuron : items_of(design.bill)) {
      if (words(neuron, "layer") != layer.name) continue;
      const double bits = figure(neuron, "bits").value_or(0);
      least = results == 0 ? bits : std::min(least, bits);
      most = std::max(most, bits);
      ++results;
    }
    if (results > 0)
      layer.bits = least == most ? fmt::format("{:.0f}", least)
                                 : fmt::format("{:.0f} to {:.0f}", least, most);
    table.rows.push_back(
        {layer.name, fmt::format("{:.0f}", layer.luts),
         all > 0 ? fmt::format("{:.0f} %", 100 * layer.luts / all) : "–",
         fmt::format("{:.0f}", layer.end - layer.begin), number_text(figure(one, "adders")),
         results > 0 ? std::to_string(results) : "–", layer.bits.empty() ? "–" : layer.bits});
    layers.push_back(std::move(layer));
  }
  if (layers.empty()) return {};
  std::string html = datapath_chart(layers) + html_table(table);
  html += sentence(
      "Rounding belongs to the layer that takes the rounded numbers: results are a layer's inputs, "
      "rounded, and the network's outputs. Levels are what a layer adds to those before it, "
      "without "
      "registers.");
  return PagePart{id, title, html};
}

std::optional<PagePart> passes_part(const DesignData& design) {
  HtmlTable table{
      "Optimisers",
      {"pass", "LUTs before", "after", "levels before", "after", "adder bits before", "after"},
      {},
      {},
      {false, true, true, true, true, true, true}};
  for (const Value& step : items_of(entry_in(design.manifest, "passes"))) {
    const Value &before = entry_in(step, "before"), &after = entry_in(step, "after");
    table.rows.push_back({words(step, "pass"), number_text(figure(before, "luts")),
                          number_text(figure(after, "luts")), number_text(figure(before, "levels")),
                          number_text(figure(after, "levels")),
                          number_text(figure(before, "adder_bits")),
                          number_text(figure(after, "adder_bits"))});
  }
  if (table.rows.empty()) return {};
  return PagePart{
      "passes", "What each optimiser saved",
      html_table(table) +
          sentence(
              "By the same model as the estimate above; the last step is what was emitted, before "
              "registers.")};
}

// Published figures stand beside networks of the same task only.
bool is_jet_tagger(const DesignData& design) {
  return items_of(entry_in(design.manifest, "inputs")).size() == 16 &&
         items_of(entry_in(design.manifest, "outputs")).size() == 5;
}

std::optional<PagePart> accuracy_part(const std::vector<DesignData>& designs) {
  ScatterChart chart;
  chart.title = "Accuracy against look-up tables";
  chart.x = {"LUTs", AxisKind::logarithmic, NumberText::plain};
  chart.y = {"accuracy", AxisKind::linear, NumberText::percent};
  bool jets = true;
  for (const DesignData& design : designs) {
    const CostFigure cost = cost_figure(design);
    const auto accuracy = accuracy_figure(design);
    jets = jets && is_jet_tagger(design);
    if (!accuracy || !cost.luts) continue;
    ScatterPoint point{*cost.luts, *accuracy, "these designs", {}};
    point.text.label = design.name;
    point.text.hover = fmt::format("{}: {}, {:.0f} LUTs ({})", design.name, accuracy_text(accuracy),
                                   *cost.luts, cost.kind);
    chart.points.push_back(std::move(point));
  }
  if (chart.points.empty()) return {};
  std::string below;
  if (jets) {
    HtmlTable table{"Published systems",
                    {"system", "accuracy", "LUTs", "ns", "data", "encoder", "part", "further"},
                    {},
                    {},
                    {false, true, true, true}};
    for (const PublishedHardware& one : published_hardware()) {
      ScatterPoint point{one.luts, one.accuracy, "published, " + one.data, {}};
      point.text.hover = fmt::format("{} (published, {}): {:.3f}, {:.0f} LUTs", one.system,
                                     one.data, one.accuracy, one.luts);
      chart.points.push_back(std::move(point));
      table.rows.push_back({one.system, fmt::format("{:.1f} %", 100 * one.accuracy),
                            fmt::format("{:.0f}", one.luts),
                            one.delay_ns ? fmt::format("{:.1f}", *one.delay_ns) : "–", one.data,
                            one.encoder, "not recorded", one.further});
    }
    below = sentence(
                "Published figures are as others printed them, after placement on their own parts, "
                "and were not measured here. Data differ: the two published variants lie about a "
                "point apart, and neither is the data of these designs unless their rows say so. "
                "Compare within one series only.") +
            html_table(table);
  }
  return PagePart{"accuracy", "Accuracy against cost", scatter_chart(chart) + below};
}

std::string line_id(int64_t line) { return fmt::format("L{}", line); }

std::optional<PagePart> bill_part(const DesignData& design, std::set<int64_t>& linked) {
  std::vector<const Value*> neurons;
  for (const Value& one : items_of(design.bill))
    if (one.is_dict()) neurons.push_back(&one);
  if (neurons.empty()) return {};
  std::stable_sort(neurons.begin(), neurons.end(), [](const Value* a, const Value* b) {
    return figure(*a, "luts").value_or(0) > figure(*b, "luts").value_or(0);
  });
  HtmlTable table{"Neurons, dearest first",
                  {"signal", "line", "LUTs", "of them its own", "bits", "lowest", "highest",
                   "reads", "adders", "ready at level"},
                  {},
                  {},
                  {false, true, true, true, true, true, true, true, true, true}};
  double total = 0;
  for (const Value* one : neurons) {
    const auto line = figure(*one, "line");
    const bool known = line && *line >= 1 && !design.source.empty();
    if (known) linked.insert(static_cast<int64_t>(*line));
    total += figure(*one, "luts").value_or(0);
    table.links.push_back(known ? "#" + line_id(static_cast<int64_t>(*line)) : "");
    table.rows.push_back({words(*one, "signal"), known ? number_text(line) : "–",
                          number_text(figure(*one, "luts"), "{:.1f}"),
                          number_text(figure(*one, "own_luts"), "{:.1f}"),
                          number_text(figure(*one, "bits")), number_text(figure(*one, "lowest")),
                          number_text(figure(*one, "highest")), number_text(figure(*one, "inputs")),
                          number_text(figure(*one, "adders")),
                          number_text(figure(*one, "levels"))});
  }
  return PagePart{"bill", "Bill",
                  html_table(table) +
                      sentence(fmt::format(
                          "{} results, {:.0f} LUTs by the estimate. What several neurons use is "
                          "shared out evenly among them; adders are counted for each. NAME_in3 is "
                          "what layer NAME takes as its feature 3.",
                          neurons.size(), total))};
}

PagePart source_part(const DesignData& design, const std::set<int64_t>& linked) {
  const std::vector<std::string> lines = split(design.source, '\n');
  const bool whole = lines.size() <= most_source_lines;
  std::string html =
      whole ? "" : sentence("A long text: only lines that the bill leads to are shown.");
  html += "<pre tabindex=\"0\" style=\"max-height:none;white-space:pre\">";
  for (size_t i = 0; i < lines.size(); ++i) {
    const int64_t number = static_cast<int64_t>(i) + 1;
    const bool target = linked.count(number) > 0;
    if (!whole && !target) continue;
    html += target ? fmt::format("<span id=\"{}\"><a href=\"#bill\">{:>5}</a>  ", line_id(number),
                                 number)
                   : fmt::format("{:>5}  ", number);
    html += escaped(lines[i]) + (target ? "</span>\n" : "\n");
  }
  return {"source", "SystemVerilog", html + "</pre>"};
}

}  // namespace

bool is_design_folder(const std::string& folder) {
  std::error_code ignored;
  return fs::is_regular_file(fs::path(folder) / "manifest.json", ignored) &&
         fs::is_directory(fs::path(folder) / "rtl", ignored);
}

std::vector<std::string> find_design_folders(const std::string& folder) {
  if (is_design_folder(folder)) return {folder};
  std::vector<std::string> found;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored))
    if (!entry.is_symlink(ignored) && is_design_folder(entry.path().string()))
      found.push_back(entry.path().string());
  std::sort(found.begin(), found.end());
  return found;
}

DesignData read_design(const std::string& folder) {
  DesignData design;
  design.folder = folder;
  fs::path path = fs::path(folder).lexically_normal();
  if (path.filename().empty()) path = path.parent_path();
  design.name = path.filename().string();
  const auto optional_json = [&](const char* name) {
    const std::string file = (fs::path(folder) / name).string();
    std::error_code ignored;
    return fs::is_regular_file(file, ignored) ? read_json(file) : Value();
  };
  design.manifest = read_json((fs::path(folder) / "manifest.json").string());
  design.bill = optional_json("bill.json");
  design.simulation = optional_json("simulation.json");
  design.cpp_check = optional_json("cpp_check.json");
  design.synthesis = optional_json("synthesis.json");
  const std::string top = words(design.manifest, "top");
  // The name goes into a path: a plain one, or none.
  const bool plain = !top.empty() && std::all_of(top.begin(), top.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_';
  });
  const std::string source = (fs::path(folder) / "rtl" / (top + ".sv")).string();
  std::error_code ignored;
  if (plain && fs::is_regular_file(source, ignored)) design.source = read_text_file(source);
  return design;
}

std::vector<PagePart> design_parts(const std::vector<DesignData>& designs) {
  std::vector<PagePart> parts = {designs_part(designs), checks_part(designs)};
  if (auto part = accuracy_part(designs)) parts.push_back(std::move(*part));
  for (size_t i = 0; i < designs.size(); ++i)
    if (auto part = datapath_part(
            designs[i], fmt::format("datapath-{}", i),
            designs.size() > 1 ? "Datapath of " + designs[i].name : std::string("Datapath")))
      parts.push_back(std::move(*part));
  if (designs.size() != 1) return parts;
  if (auto part = passes_part(designs[0])) parts.push_back(std::move(*part));
  std::set<int64_t> linked;
  if (auto part = bill_part(designs[0], linked)) parts.push_back(std::move(*part));
  if (!designs[0].source.empty()) parts.push_back(source_part(designs[0], linked));
  return parts;
}

PageFrame design_frame(const std::vector<DesignData>& designs) {
  PageFrame frame;
  frame.title = designs.size() == 1 ? designs[0].name : "Designs compared";
  frame.subtitle = fmt::format("{} emitted designs", designs.size());
  if (designs.size() == 1)
    frame.subtitle =
        fmt::format("{} in style {}, from {}", words(designs[0].manifest, "network"),
                    words(designs[0].manifest, "style"), words(designs[0].manifest, "source"));
  std::set<std::string> rows;
  for (const DesignData& design : designs)
    if (const std::string on = words(entry_in(design.manifest, "accuracy"), "rows"); !on.empty())
      rows.insert(on);
  frame.measured = join({rows.begin(), rows.end()}, "; ");
  return frame;
}

}  // namespace mase
