// SPDX-License-Identifier: Apache-2.0
// ch inspect: what a checkpoint or an array file holds, without running or trusting any of it.
#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <filesystem>

#include "mase/base/table.h"
#include "mase/base/tensor_text.h"
#include "mase/base/text.h"
#include "mase/cli/command.h"
#include "mase/cli/plot_option.h"
#include "mase/io/networks/checkpoint.h"
#include "mase/io/networks/tensor_summary.h"
#include "mase/io/numpy/numpy_tensors.h"

namespace mase::inspect_command {
namespace {

struct Inspected {
  std::string type;
  TensorTable tensors;  // under their names in the file
  size_t network = 0;   // so many of them are the network's; the others follow
  Value contents;
  std::optional<Graph> graph;
};

Inspected open(const std::string& path) {
  Inspected found;
  const bool folder = std::filesystem::is_directory(path);
  if (!folder && (looks_like_npy(path) || looks_like_npz(path))) {
    Dict skipped;
    found.type = looks_like_npy(path) ? "npy" : "npz";
    found.tensors = read_numpy_tensors(path, &skipped);
    found.network = found.tensors.size();
    if (!skipped.empty()) found.contents = skipped;
    return found;
  }
  Checkpoint checkpoint = inspect_checkpoint(path);
  found.type = checkpoint_type_name(checkpoint.type);
  found.network = checkpoint.tensors.size();
  for (auto& [name, tensor] : checkpoint.tensors)
    found.tensors.emplace_back(checkpoint.prefix + name, std::move(tensor));
  for (auto& item : checkpoint.others) found.tensors.push_back(std::move(item));
  if (checkpoint.graph)
    for (const auto& [module_path, module] : checkpoint.graph->modules())
      for (const auto& [name, mask] : module.masks)
        found.tensors.emplace_back(fmt::format("{}.{} (mask)", module_path, name), mask);
  found.contents = std::move(checkpoint.contents);
  found.graph = std::move(checkpoint.graph);
  return found;
}

std::string number(double value) { return std::isnan(value) ? "" : fmt::format("{:.4g}", value); }

// Lightning's names hold whole descriptions: the middle of a long one is left out.
std::string shortened(const std::string& name) {
  constexpr size_t longest = 72, kept_head = 36, kept_tail = 33;
  const std::string shown = printable(name);
  if (shown.size() <= longest) return shown;
  size_t head = kept_head, tail = shown.size() - kept_tail;
  const auto inside = [&](size_t at) {
    return (static_cast<unsigned char>(shown[at]) & 0xC0) == 0x80;
  };
  while (head > 0 && inside(head)) --head;
  while (tail < shown.size() && inside(tail)) ++tail;
  return shown.substr(0, head) + "..." + shown.substr(tail);
}

std::vector<std::string> row(const std::string& name, const Tensor& tensor, bool stats) {
  std::vector<std::string> cells = {shortened(name), dtype_name(tensor.dtype()),
                                    shape_text(tensor.shape())};
  if (stats) {
    const TensorSummary summary = summarize(tensor);
    const bool any = summary.count > 0;
    std::string zeros;
    if (any)
      zeros = fmt::format("{:.1f}", 100.0 * static_cast<double>(summary.zeros) /
                                        static_cast<double>(summary.count));
    if (summary.not_finite > 0) zeros += fmt::format(" ({} not finite)", summary.not_finite);
    for (const double value : {summary.minimum, summary.mean, summary.deviation, summary.maximum})
      cells.push_back(number(value));
    cells.push_back(zeros);
  }
  cells.push_back(with_thousands(static_cast<int64_t>(tensor.bytes())));
  return cells;
}

std::string leaf_text(const Value& value) {
  constexpr size_t longest = 100;
  if (value.is_string()) {
    const std::string shown = printable(value.as_string());
    return shown.size() > longest ? shown.substr(0, longest) + "..." : shown;
  }
  if (value.is_symbol()) return printable(value.symbol());
  return printable(python_repr(value));
}

bool is_leaf(const Value& value) {
  if (value.is_list()) {
    // Short lists of plain values read best on one line.
    const List& list = value.as_list();
    return list.size() <= 8 && std::all_of(list.begin(), list.end(), [](const Value& item) {
             return !item.is_list() && !item.is_dict();
           });
  }
  return !value.is_dict() || value.as_dict().empty();
}

void print_tree(const Value& value, int depth) {
  constexpr size_t most_items = 60;
  size_t shown = 0;
  const auto item = [&](const std::string& key, const Value& inner) {
    if (++shown > most_items) return;
    const std::string indent(static_cast<size_t>(2 * depth), ' ');
    if (inner.is_list() && is_leaf(inner)) {
      std::vector<std::string> parts;
      for (const Value& part : inner.as_list()) parts.push_back(leaf_text(part));
      fmt::print("{}{}: [{}]\n", indent, printable(key), join(parts, ", "));
    } else if (is_leaf(inner)) {
      fmt::print("{}{}: {}\n", indent, printable(key), leaf_text(inner));
    } else {
      fmt::print("{}{}:\n", indent, printable(key));
      print_tree(inner, depth + 1);
    }
  };
  if (value.is_dict()) {
    for (const auto& [key, inner] : value.as_dict()) item(key, inner);
  } else if (value.is_list()) {
    for (const Value& inner : value.as_list()) item(fmt::format("- {}", shown), inner);
  } else {
    fmt::print("{}{}\n", std::string(static_cast<size_t>(2 * depth), ' '), leaf_text(value));
  }
  if (shown > most_items)
    fmt::print("{}... {} more (--json prints all)\n",
               std::string(static_cast<size_t>(2 * depth), ' '), shown - most_items);
}

Value graph_facts(const Graph& graph) {
  int64_t quantised = 0;
  for (const auto& [path, module] : graph.modules()) quantised += module.quantization.active();
  return Dict{{"network", graph.name},
              {"nodes", graph.order().size()},
              {"modules", graph.modules().size()},
              {"quantised", quantised},
              {"parameters", graph.parameter_count()}};
}

int64_t total_bytes(const TensorTable& tensors) {
  int64_t total = 0;
  for (const auto& [name, tensor] : tensors) total += static_cast<int64_t>(tensor.bytes());
  return total;
}

int64_t total_elements(const TensorTable& tensors, size_t count) {
  int64_t total = 0;
  for (size_t i = 0; i < count; ++i) total += tensors[i].second.numel();
  return total;
}

void print_json(const std::string& path, const Inspected& found, bool stats) {
  List tensors;
  for (size_t i = 0; i < found.tensors.size(); ++i) {
    const auto& [name, tensor] = found.tensors[i];
    Dict entry{{"name", name},
               {"dtype", dtype_name(tensor.dtype())},
               {"shape", Value::of(tensor.shape())},
               {"bytes", tensor.bytes()},
               {"network", i < found.network}};
    if (stats) {
      const TensorSummary summary = summarize(tensor);
      const auto put = [&](const char* key, double value) {
        entry.set(key, std::isnan(value) ? Value() : Value(value));
      };
      put("min", summary.minimum);
      put("mean", summary.mean);
      put("std", summary.deviation);
      put("max", summary.maximum);
      entry.set("zeros", summary.zeros);
      entry.set("not_finite", summary.not_finite);
    }
    tensors.push_back(std::move(entry));
  }
  Dict out{{"file", path}, {"type", found.type}, {"tensors", tensors}};
  out.set("totals", Dict{{"tensors", found.tensors.size()},
                         {"elements", total_elements(found.tensors, found.tensors.size())},
                         {"bytes", total_bytes(found.tensors)}});
  if (found.graph) out.set("graph", graph_facts(*found.graph));
  out.set("contents", found.contents);
  fmt::print("{}\n", to_json(out, 2));
}

void print_table(const std::string& path, const Inspected& found, bool stats) {
  fmt::print("{}: {}\n\n", printable(path), found.type);
  if (!found.tensors.empty()) {
    std::vector<std::string> header = {"name", "dtype", "shape"};
    if (stats) header.insert(header.end(), {"min", "mean", "std", "max", "zeros %"});
    header.push_back("bytes");
    Table table(header);
    for (size_t i = 0; i < found.tensors.size(); ++i) {
      if (i == found.network && i > 0) table.add_rule();
      table.add(row(found.tensors[i].first, found.tensors[i].second, stats));
    }
    fmt::print("{}\n", table.str());
  }
  fmt::print("{} tensors, {} elements, {}", found.tensors.size(),
             with_thousands(total_elements(found.tensors, found.tensors.size())),
             human_bytes(static_cast<double>(total_bytes(found.tensors))));
  if (found.network < found.tensors.size())
    fmt::print("; of the network: {} tensors, {} elements", found.network,
               with_thousands(total_elements(found.tensors, found.network)));
  fmt::print("\n");
  if (found.graph) {
    fmt::print("\ngraph\n");
    print_tree(graph_facts(*found.graph), 1);
  }
  if (!found.contents.is_null()) {
    fmt::print("\nother contents\n");
    print_tree(found.contents, 1);
  }
}

void print_tensor(const std::string& path, const Inspected& found, const std::string& name,
                  bool json) {
  std::vector<std::string> names;
  for (const auto& [known, tensor] : found.tensors) {
    names.push_back(known);
    if (known != name) continue;
    if (!json) {
      fmt::print("{} {} {}\n{}\n", printable(name), dtype_name(tensor.dtype()),
                 shape_text(tensor.shape()), tensor_text(tensor));
      return;
    }
    List values;
    for (int64_t i = 0; i < tensor.numel(); ++i) values.push_back(tensor.item(i));
    fmt::print("{}\n", to_json(Dict{{"name", name},
                                    {"dtype", dtype_name(tensor.dtype())},
                                    {"shape", Value::of(tensor.shape())},
                                    {"values", values}}));
    return;
  }
  if (names.size() > 20) names.resize(20);
  throw Error(path, fmt::format("holds no tensor '{}'", printable(name)),
              printable(suggestion(name, names)));
}

// One histogram per tensor of the network, or of the one that was asked for.
void print_plots(const Inspected& found, const Value& wanted, const PlotStyle& style) {
  constexpr int64_t most_values = 1 << 20;  // of a larger tensor every n-th value is drawn
  for (size_t i = 0; i < found.tensors.size(); ++i) {
    const auto& [name, tensor] = found.tensors[i];
    const bool chosen = wanted.is_string() ? wanted.as_string() == name : i < found.network;
    if (!chosen || tensor.numel() < 2) continue;
    std::vector<double> values;
    const int64_t stride = (tensor.numel() + most_values - 1) / most_values;
    for (int64_t at = 0; at < tensor.numel(); at += stride) values.push_back(tensor.item(at));
    HistogramPlot plot = histogram_of(values);
    plot.title = name;
    fmt::print("\n{}", plot_histogram(plot, style));
  }
}

int run(const Arguments& arguments) {
  const std::string& path = arguments["file"].as_string();
  const bool stats = arguments["stats"].as_string() == "yes";
  const bool json = arguments["json"].as_bool();
  const Inspected found = open(path);
  if (arguments["tensor"].is_string())
    print_tensor(path, found, arguments["tensor"].as_string(), json);
  else if (json)
    print_json(path, found, stats);
  else
    print_table(path, found, stats);
  if (arguments["plot"].as_bool() && !json) {
    PlotStyle style = plot_style(arguments.values);
    style.height = 6;
    print_plots(found, arguments["tensor"], style);
  }
  return 0;
}

std::vector<Field> options() {
  std::vector<Field> fields = {
      {.name = "tensor", .type = FieldType::text, .help = "print the values of this tensor"},
      {.name = "stats",
       .type = FieldType::text,
       .default_value = "yes",
       .help = "compute min, mean, std, max and the share of zeros; 'no' for huge files",
       .choices = {"yes", "no"}},
      {.name = "json", .type = FieldType::boolean, .default_value = false, .help = "as JSON"},
  };
  for (Field& field : plot_fields()) fields.push_back(field);
  return fields;
}

const Register<CommandRecord> registered{{
    .name = "inspect",
    .group = CommandGroup::look,
    .summary = "Show what a checkpoint or an array file holds",
    .help =
        "Reads PyTorch's .pt, .pth and Lightning's .ckpt, safetensors, .mz, .onnx, Hugging Face "
        "folders, .npy and .npz. Nothing in a file is run or trusted: hostile files are "
        "refused, unknown Python classes are shown by name.",
    .positionals = {{.name = "file", .help = "the file or folder"}},
    .options = {options()},
    .examples = {"ch inspect best.ckpt", "ch inspect best.ckpt --tensor model.seq_blocks.2.weight",
                 "ch inspect weights.safetensors --stats no --json"},
    .run = run,
}};

}  // namespace
}  // namespace mase::inspect_command
