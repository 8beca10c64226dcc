// SPDX-License-Identifier: Apache-2.0
#include "mase/cli/limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "mase/base/error.h"
#include "mase/base/registry.h"
#include "mase/base/table.h"
#include "mase/base/text.h"
#include "mase/formats/format.h"
#include "mase/hardware/emit/design.h"
#include "mase/hardware/emit/emitter.h"
#include "mase/hardware/lower/lower_graph.h"
#include "mase/io/onnx/write/export.h"
#include "mase/ir/op.h"
#include "mase/models/network_builder.h"
#include "mase/passes/pass.h"

namespace mase {
namespace {

// Reasons, each with a number: cells of a table say the number, a list below says the words.
class Reasons {
 public:
  std::string cell(const std::optional<std::string>& reason) {
    if (!reason) return "yes";
    const auto found = std::find(reasons_.begin(), reasons_.end(), *reason);
    if (found == reasons_.end()) reasons_.push_back(*reason);
    return fmt::format("no ({})",
                       std::find(reasons_.begin(), reasons_.end(), *reason) - reasons_.begin() + 1);
  }
  std::string list() const {
    std::string text;
    for (size_t i = 0; i < reasons_.size(); ++i)
      text += fmt::format("{}. {}\n", i + 1, replace_all(reasons_[i], "|", "\\|"));
    return text;
  }

 private:
  std::vector<std::string> reasons_;
};

// Why it cannot be done; nothing if it can.
std::optional<std::string> refusal(const std::function<void()>& attempt) {
  try {
    attempt();
  } catch (const Error& error) {
    return error.cause();
  }
  return {};
}

// Attributes that an operation wants to be given, small.
Dict small_attributes(const OpRecord& op) {
  static const std::map<std::string, Value> sizes = {
      {"out_features", 3}, {"out_channels", 2},
      {"kernel_size", 2},  {"num_groups", 1},
      {"output_size", 1},  {"scale_factor", 2},
      {"dim", 1},          {"dim0", 1},
      {"dim1", 2},         {"shape", Value::of(std::vector<int64_t>{-1})}};
  Dict attributes;
  for (const Field& field : op.attributes.fields)
    if (const auto size = sizes.find(field.name);
        field.default_value.is_null() && size != sizes.end())
      attributes.set(field.name, size->second);
  return attributes;
}

// The operation behind a quantised layer, on vectors, then on images, then on sequences.
std::optional<Graph> network_with(const OpRecord& op) {
  struct Place {
    Shape sample;
    bool images;
  };
  static const Place places[] = {{{4}, false}, {{2, 4, 4}, true}, {{3, 4}, false}};
  // One whole result of numbers: the first of several, or numbers of rows, are other questions.
  if (!op.index_inputs.empty() || (op.results && (!op.results->several || op.class_name.empty())))
    return {};
  for (const Place& place : places)
    for (const int operands : {1, 2}) {
      if (operands < op.min_inputs || (op.max_inputs >= 0 && operands > op.max_inputs)) continue;
      std::optional<Graph> graph;
      const auto failed = refusal([&] {
        NetworkBuilder builder("net", {.sample_shape = place.sample}, place.sample, 3);
        const NodeId layer = place.images ? builder.conv("before", builder.input(), 2, 1)
                                          : builder.linear("before", builder.input(), 4);
        const NodeId before = builder.module("active", "relu", {}, layer);
        const std::vector<NodeId> inputs(static_cast<size_t>(operands), before);
        const Dict attributes = small_attributes(op);
        graph = builder.finish(
            operands == 1 && !op.class_name.empty()
                ? builder.module("op", op.name, attributes, before)
                : builder.function(op.name, inputs, {}, {attributes.begin(), attributes.end()}));
      });
      if (!failed) return graph;
    }
  return {};
}

// Drawn weights might all be rounded away, and nothing be left of the network.
void set_weights(Graph& graph) {
  constexpr float values[] = {0.5F, 1, -0.5F, 0.5F, -1};
  for (auto& [path, module] : graph.modules())
    if (Tensor* weight = module.find("weight"))
      for (int64_t i = 0; i < weight->numel(); ++i)
        weight->mutable_data<float>()[i] = values[static_cast<size_t>(i) % std::size(values)];
}

void quantize(Graph& graph, Dict config) {
  PassContext context;
  run_pass(graph, "quantize",
           Dict{{"by", "type"}, {"default", Dict{{"config", std::move(config)}}}}, context);
}

Dict fixed_point(int64_t width) {
  Dict config{{"name", "integer"}};
  for (const char* operand : {"data_in", "weight", "bias", "data_out"}) {
    config.set(std::string(operand) + "_width", width);
    config.set(std::string(operand) + "_frac_width", 1);
  }
  return config;
}

std::string operations_part() {
  const std::vector<std::string> styles = Registry<EmitterRecord>::instance().names();
  std::vector<std::string> header = {"Operation", "ONNX"};
  for (const std::string& style : styles) header.push_back("`" + style + "`");
  Table table(header);
  Reasons reasons;
  std::vector<std::string> untried;
  for (const OpRecord* op : Registry<OpRecord>::instance().all()) {
    std::optional<Graph> graph = network_with(*op);
    if (!graph) {
      untried.push_back(op->name);
      continue;
    }
    std::vector<std::string> row = {"`" + op->name + "`",
                                    refusal([&] { onnx::export_graph(*graph); }) ? "no" : "yes"};
    LoweredNetwork lowered;
    const auto unlowered = refusal([&] {
      set_weights(*graph);
      quantize(*graph, fixed_point(3));
      lowered = lower(*graph);
    });
    for (const std::string& style : styles)
      row.push_back(unlowered ? reasons.cell(replace_all(*unlowered, "'" + op->name + "'", "it"))
                              : reasons.cell(refusal([&] {
                                  make_design(lowered.graph, {.style = style, .effort = 0});
                                })));
    table.add(std::move(row));
  }
  return fmt::format(
      "Tried as one small network each: a linear layer (a convolution, where images are wanted), a "
      "ReLU, and the operation behind them, in fixed point where it can be. Whether a network of "
      "yours is small enough for a style is another question. Batch norms are multiplied into the "
      "layer before them by `fuse_batch_norm`, and `table_linear` rounds its inputs itself and "
      "wants them from outside or from another one.\n\n{}\n{}\n"
      "Not tried, since their arguments cannot be guessed: `{}`.\n",
      table.str(TableStyle::pipe), reasons.list(), fmt::join(untried, "`, `"));
}

// The format with about eight bits, or as its defaults have it.
std::optional<Value> usual_config(const FormatRecord& format) {
  std::vector<Value> configs;
  if (format.ladder) configs = format.ladder(4.0);
  if (configs.empty()) {
    Problems problems;
    configs.push_back(validate(Value(Dict{}), format.schema, "", problems));
    if (!problems.empty()) return {};
  }
  const auto distance = [](const Value& config) {
    const Value& width = config["width"];
    return width.is_int() ? std::abs(width.as_int() - 8) : 0;
  };
  return *std::min_element(configs.begin(), configs.end(), [&](const Value& a, const Value& b) {
    return distance(a) < distance(b);
  });
}

// Two linear layers, the first in fixed point, the second in this format.
Graph layer_with(const FormatRecord& format, const Value& config) {
  NetworkBuilder builder("net", {.sample_shape = {4}}, {4}, 3);
  Graph graph =
      builder.finish(builder.linear("second", builder.linear("first", builder.input(), 32), 3));
  Dict keys{{"name", format.name}};
  for (const char* operand : {"data_in", "weight", "bias"})
    for (const auto& [key, value] : config.as_dict())
      if (!value.is_null()) keys.set(std::string(operand) + "_" + key, value);
  PassContext context;
  run_pass(graph, "quantize",
           Dict{{"by", "name"},
                {"default", Dict{{"config", Dict{{"name", "NA"}}}}},
                {"first", Dict{{"config", fixed_point(8)}}},
                {"second", Dict{{"config", std::move(keys)}}}},
           context);
  return graph;
}

std::string formats_part() {
  Table table({"Format", "Tried as", "In hardware", "ONNX `qonnx`", "`qcdq`", "`qdq`"});
  Reasons reasons;
  for (const FormatRecord* format : Registry<FormatRecord>::instance().all()) {
    const std::optional<Value> config = usual_config(*format);
    if (!config) continue;
    std::string keys;
    for (const Field& field : format->schema.fields)
      if (field.required || field.name == "width")
        if (const Value& value = (*config)[field.name]; !value.is_null())
          keys += fmt::format("{}{} {}", keys.empty() ? "" : ", ", field.name, python_repr(value));
    std::vector<std::string> row = {"`" + format->name + "`", keys};
    row.push_back(reasons.cell(refusal([&] { lower(layer_with(*format, *config)); })));
    for (const auto flavour : {onnx::Flavour::qonnx, onnx::Flavour::qcdq, onnx::Flavour::qdq})
      row.push_back(reasons.cell(refusal(
          [&] { onnx::export_graph(layer_with(*format, *config), {.flavour = flavour}); })));
    table.add(std::move(row));
  }
  return table.str(TableStyle::pipe) + "\n" + reasons.list();
}

}  // namespace

std::string limits_page() {
  return "# Limits\n\nWhat the program cannot do, found by trying when this page was written; the "
         "numbers lead to the words below each table, which are those that the program itself "
         "says.\n\n## Operations in each style of hardware\n\n" +
         operations_part() + "\n## Number formats in hardware and in ONNX files\n\n" +
         formats_part() +
         "\n## What else there is not\n\n"
         "- GPUs: options for them are accepted, with a line that says so. Numbers of 16 bits in "
         "training (`--trainer-precision`): 32 only.\n"
         "- ONNX: text, three spatial dimensions, random dropout, sequences of tensors, `Scan`, "
         "`If` and `Loop` that depend on values ([what is read](../onnx_operators.md)).\n"
         "- Delays are a model until a design is placed; `ch synth --place` knows one small part.\n"
         "- The stream style's text is compared by simulation, not proved "
         "([what \"proved\" means](../concepts/proved.md)).\n";
}

}  // namespace mase
