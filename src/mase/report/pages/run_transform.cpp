// SPDX-License-Identifier: Apache-2.0
// What a transform did: the graph, values against the numbers of each format, error per layer,
// before and after, costs, and what each pass said.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "mase/base/figure.h"
#include "mase/base/text.h"
#include "mase/report/charts/graph_chart.h"
#include "mase/report/charts/histogram_chart.h"
#include "mase/report/pages/html.h"
#include "mase/report/pages/run_parts.h"
#include "mase/report/pages/shown.h"

namespace mase {
namespace {

using shown::entry;
using shown::items;
using shown::number;

// 'data_in integer 8/4, weight integer 8/4' is 'integer 8/4'.
std::string format_words(const Value& format) {
  if (format.is_null()) return "";
  std::vector<std::string> parts;
  const auto add = [&](const std::string& part) {
    if (std::find(parts.begin(), parts.end(), part) == parts.end()) parts.push_back(part);
  };
  if (format.is_dict()) {
    for (const auto& [operand, one] : format.as_dict()) add(shown::text(one));
    return join(parts, ", ");
  }
  const std::string text = shown::text(format);
  int depth = 0;
  std::string part;
  for (const char c : text + ",") {
    depth += c == '(' ? 1 : c == ')' ? -1 : 0;
    if (c != ',' || depth > 0) {
      part += c;
      continue;
    }
    part = strip(part);
    const size_t blank = part.find(' ');
    const bool operand = blank != std::string::npos && part.find('(') > blank;
    add(operand ? part.substr(blank + 1) : part);
    part.clear();
  }
  return join(parts, ", ");
}

std::string tree_html(const Value& value, int depth = 0) {
  const auto simple = [](const Value& one) {
    if (one.is_dict()) return one.as_dict().size() == 0;
    const List& all = items(one);
    return std::none_of(all.begin(), all.end(),
                        [](const Value& v) { return v.is_dict() || v.is_list(); });
  };
  if (simple(value) || depth > 12) return "<span>" + escaped(shown::text(value)) + "</span>";
  std::string html = "<ul class=\"tree\">";
  const auto add = [&](const std::string& key, const Value& item) {
    html += "<li><span class=\"muted\">" + escaped(key) + "</span> " + tree_html(item, depth + 1) +
            "</li>";
  };
  if (value.is_dict())
    for (const auto& [key, item] : value.as_dict()) add(key, item);
  else
    for (size_t i = 0; i < items(value).size(); ++i) add(std::to_string(i), items(value)[i]);
  return html + "</ul>";
}

std::optional<PagePart> graph_part(const Value& transform) {
  std::vector<GraphBox> boxes;
  std::string details;
  for (const Value& node : items(entry(transform, "nodes"))) {
    if (!node.is_dict() || !node["name"].is_string()) continue;
    GraphBox box;
    box.name = node["name"].as_string();
    box.kind = shown::word(node["kind"]);
    for (const char* key : {"class", "op", "kind"})
      if (box.type.empty()) box.type = shown::word(node[key]);
    box.shape = shown::shape(node["shape"]);
    box.format = format_words(node["format"]);
    for (const Value& input : items(node["inputs"])) box.inputs.push_back(shown::text(input));
    const std::string id = fmt::format("node-{}", boxes.size());
    box.link = "#" + id;
    details += "<details class=\"node-facts\"><summary>" + escaped(box.name) +
               "</summary><div id=\"" + id + "\">" +
               facts_html({{"kind", box.kind},
                           {"target", shown::word(node["target"])},
                           {"op", shown::word(node["op"])},
                           {"class", shown::word(node["class"])},
                           {"inputs", join(box.inputs, ", ")},
                           {"shape", box.shape},
                           {"format", box.format}}) +
               (node["meta"].is_null() ? "" : tree_html(node["meta"])) + "</div></details>";
    boxes.push_back(std::move(box));
  }
  if (boxes.empty()) return {};
  return PagePart{
      "graph", "Graph",
      "<div class=\"graph-row\">" + graph_chart(boxes) + "<div class=\"panel\" id=\"node-panel\">" +
          note_html("A box leads to what is known of its node.") + details + "</div></div>"};
}

std::optional<PagePart> histograms_part(const Value& transform) {
  std::string html;
  for (const Value& one : items(entry(transform, "histograms"))) html += histogram_chart(one);
  if (html.empty()) return {};
  return PagePart{
      "histograms", "Values against representable ranges",
      "<p class=\"keys\"><i class=\"key-bar\"></i>kept<i class=\"key-lost\"></i>saturated<i "
      "class=\"key-range\"></i>representable<i class=\"key-grid\"></i>the format’s numbers</p><div "
      "class=\"histograms\">" +
          html + "</div>"};
}

std::string bars_html(const std::string& title, const List& rows, const char* key, bool decibels) {
  double peak = 1e-300;
  bool any = false;
  for (const Value& row : rows)
    if (const auto value = number(entry(row, key))) {
      peak = std::max(peak, std::abs(*value));
      any = true;
    }
  if (!any) return "";
  std::string html = "<div><h3>" + escaped(title) + "</h3><div class=\"bars\" role=\"list\">";
  for (const Value& row : rows) {
    const auto value = number(entry(row, key));
    html += fmt::format(
        "<div class=\"bar-row\" role=\"listitem\"><span class=\"bar-name\">{}</span><span "
        "class=\"bar-track\"><span class=\"bar-fill{}\" "
        "style=\"width:{:.2f}%\"></span></span><span "
        "class=\"bar-value\">{}</span></div>",
        escaped(shown::text(entry(row, "node"))), decibels && value && *value < 10 ? " bad" : "",
        value ? 100 * std::abs(*value) / peak : 0,
        !value     ? "–"
        : decibels ? fmt::format("{:.1f} dB", *value)
                   : shown::brief(value));
  }
  return html + "</div></div>";
}

std::optional<PagePart> layers_part(const Value& transform) {
  const List& rows = items(entry(transform, "layers"));
  const auto count = number(entry(transform, "rows"));
  HtmlTable table{count && *count > 0
                      ? fmt::format("Error per layer on the first {} training rows (random ones "
                                    "where there are no data); output and weight error are the "
                                    "largest",
                                    shown::whole(count))
                      : "Error per layer; output and weight error are the largest",
                  {"layer", "SQNR", "output error", "weight error", "cosine", "saturated"},
                  {},
                  {},
                  {false, true, true, true, true, true}};
  table.id = "layer-table";
  for (const Value& row : rows) {
    if (!row.is_dict()) continue;
    const auto sqnr = number(row["sqnr_db"]);
    table.rows.push_back(
        {shown::text(row["node"]), sqnr ? fmt::format("{:.1f} dB", *sqnr) : "–",
         shown::brief(number(row["output_error"])), shown::brief(number(row["weight_error"])),
         shown::brief(number(row["cosine"]), 6), shown::percent(number(row["saturation"]))});
  }
  if (table.rows.empty()) return {};
  return PagePart{"layers", "Error per layer",
                  "<div class=\"charts\">" +
                      bars_html("SQNR (higher is better)", rows, "sqnr_db", true) +
                      bars_html("Largest output error", rows, "output_error", false) +
                      bars_html("Largest weight error", rows, "weight_error", false) + "</div>" +
                      html_table(table)};
}

std::optional<PagePart> before_after_part(const Value& transform) {
  const List& rows = items(entry(transform, "before_after"));
  if (rows.size() < 2 || !rows[0].is_list()) return {};
  HtmlTable table{"What changed", {}, {}};
  table.id = "before-after-table";
  size_t changed = SIZE_MAX;
  for (const Value& head : items(rows[0])) {
    const std::string name = shown::text(head), low = lower_case(name);
    if (low == "changed" || low == "different") changed = table.header.size();
    table.header.push_back(name);
  }
  for (size_t r = 1; r < rows.size(); ++r) {
    std::vector<HtmlCell> cells;
    for (const Value& cell : items(rows[r])) cells.emplace_back(shown::text(cell));
    cells.resize(table.header.size());
    if (changed < cells.size()) {
      const std::string said = lower_case(cells[changed].text);
      if (said == "true" || said == "1" || said == "yes")
        for (HtmlCell& cell : cells) cell.style = "changed";
    }
    table.rows.push_back(std::move(cells));
  }
  return PagePart{"before-after", "Before and after", html_table(table)};
}

// Names as people say them, with the unit; what is not listed keeps its own.
std::string cost_name(const std::string& key) {
  static const std::map<std::string, std::string> names = {
      {"macs", "Multiply-accumulates (MACs)"},
      {"flops", "Floating-point operations (FLOPs)"},
      {"bitops", "Bit operations (BitOPs)"},
      {"ebops", "Effective bit operations per sample (EBOPs)"},
      {"ebops_exact", "Effective bit operations per sample, exact (EBOPs)"},
      {"operand_bits", "Operand bits (the labs’ “BitOPs”)"},
      {"weight_bits", "Weights, bits"},
      {"weight_memory_bits", "Memory of weights and constants, bits"},
      {"activation_memory_bits", "Memory of all layers’ results, bits"},
      {"average_weight_bits", "Average bits of products’ weights"},
      {"average_activation_bits", "Average bits of products’ inputs"},
      {"memory_density", "Memory density of both against float32"}};
  if (const auto found = names.find(key); found != names.end()) return found->second;
  std::string name = replace_all(key, "_", " ");
  if (!name.empty() && name[0] >= 'a' && name[0] <= 'z') name[0] = static_cast<char>(name[0] - 32);
  return name;
}

HtmlCell ratio_cell(const std::optional<double>& before, const std::optional<double>& after,
                    bool up_is_good) {
  if (!before || !after || *before < 0 || *after < 0) return "";
  if (*before == *after) return {"same", "1"};
  if (*before == 0 || *after == 0) return "";
  const bool less = *after < *before;
  return {less ? shown::brief(*before / *after, 3) + "× less"
               : shown::brief(*after / *before, 3) + "× more",
          shown::key(*after / *before), less != up_is_good ? "better" : "worse"};
}

std::optional<PagePart> costs_part(const Value& transform) {
  const Value& costs = entry(transform, "costs");
  HtmlTable table{"Costs", {"quantity"}, {}, {}, {false}};
  table.id = "cost-table";
  if (!costs.is_dict()) return {};
  std::vector<std::pair<std::string, const Value*>> sides;
  std::vector<std::pair<std::string, std::string>> facts;
  for (const auto& [name, value] : costs.as_dict()) {
    if (value.is_dict())
      sides.emplace_back(name, &value);
    else if (!value.is_list())
      facts.emplace_back(cost_name(name),
                         number(value) ? shown::brief(number(value)) : shown::text(value));
  }
  std::vector<std::string> keys;
  for (const auto& [name, side] : sides) {
    table.header.push_back(name);
    table.numeric.push_back(true);
    for (const auto& [key, value] : side->as_dict())
      if (!value.is_list() && std::find(keys.begin(), keys.end(), key) == keys.end())
        keys.push_back(key);
  }
  const bool two = sides.size() == 2;
  if (two) {
    table.header.emplace_back("ratio");
    table.numeric.push_back(true);
  }
  for (const std::string& key : keys) {
    if (key == "batch_size") {
      const auto batch = number((*sides[0].second)[key]);
      if (batch)
        table.caption =
            *batch == 1 ? "Costs for one sample" : "Costs for a batch of " + shown::whole(batch);
      continue;
    }
    std::vector<HtmlCell> row = {cost_name(key)};
    for (const auto& [name, side] : sides) {
      const Value& value = (*side)[key];
      row.emplace_back(number(value) ? shown::brief(number(value)) : shown::text(value));
    }
    if (two)
      row.push_back(ratio_cell(number((*sides[0].second)[key]), number((*sides[1].second)[key]),
                               key == "memory_density"));
    table.rows.push_back(std::move(row));
  }
  if (table.rows.empty() && facts.empty()) return {};
  return PagePart{"costs", "Costs",
                  (table.rows.empty() ? "" : html_table(table)) + facts_html(facts, "cost-list")};
}

std::optional<PagePart> passes_part(const Value& results) {
  std::string html;
  for (const Value& one : items(results)) {
    if (!one.is_dict()) continue;
    const bool changed = one["changed"].is_bool() && one["changed"].as_bool();
    const std::string head = fmt::format(
        "<code>{}</code> <span class=\"badge {}\">{}</span> <span class=\"muted\">{}</span>",
        escaped(shown::text(one["pass"])), changed ? "good" : "", changed ? "changed" : "unchanged",
        shown::duration(number(one["seconds"])));
    const Value& result = one["result"];
    const bool nothing = result.is_null() || (result.is_dict() && result.as_dict().size() == 0);
    html += nothing ? "<li>" + head + "</li>"
                    : "<li><details><summary>" + head + "</summary><pre>" +
                          escaped(to_json(result, 2)) + "</pre></details></li>";
  }
  if (html.empty()) return {};
  return PagePart{"passes", "Passes", "<ol class=\"passes\">" + html + "</ol>"};
}

}  // namespace

std::vector<PagePart> transform_parts(const RunData& run) {
  const Value& transform = run.run["transform"];
  std::vector<PagePart> parts;
  for (auto part : {graph_part(transform), histograms_part(transform), layers_part(transform),
                    before_after_part(transform), costs_part(transform), passes_part(run.results)})
    if (part) parts.push_back(std::move(*part));
  return parts;
}

}  // namespace mase
