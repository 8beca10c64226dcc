// SPDX-License-Identifier: Apache-2.0
#include "mase/cli/format_sweep.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>

#include "mase/base/figure.h"
#include "mase/base/table.h"
#include "mase/cli/json_option.h"
#include "mase/cli/options.h"
#include "mase/cli/plot_option.h"
#include "mase/cli/terminal.h"
#include "mase/formats/measure.h"
#include "mase/ir/op.h"
#include "mase/run/experiment.h"

namespace mase {
namespace {

// A layer with weights, and the largest magnitudes its operands take.
struct Layer {
  NodeId node = -1;
  std::string path;
  const OpRecord* op = nullptr;
  double data = 0, weight = 0, bias = 0;
};

double largest_of(const Tensor& tensor) {
  double largest = 0;
  for (const float value : tensor.values<float>())
    if (std::isfinite(value)) largest = std::max(largest, std::fabs(static_cast<double>(value)));
  return largest;
}

// Of the parameters an operand stands for.
double largest_of(const Module& module, const std::vector<std::string>& names) {
  double largest = 0;
  for (const std::string& name : names)
    if (const Tensor* tensor = module.find(name)) largest = std::max(largest, largest_of(*tensor));
  return largest;
}

std::vector<Layer> layers_of(const Graph& graph, const Tensor& samples) {
  std::vector<Layer> layers;
  std::map<NodeId, std::vector<size_t>> readers;  // producer: layers that read it
  for (const NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    const Module* module = graph.module_of(node);
    if (!module) continue;
    const OpRecord& op = find_op(module->op, node.name);
    if (!op.multiplies_weights()) continue;  // norms are folded, or stay as they are
    const std::vector<std::string> weights = operand_rules(op).parts_of("weight");
    if (!std::count(op.operands.begin(), op.operands.end(), "weight") ||
        std::none_of(weights.begin(), weights.end(),
                     [&](auto& name) { return module->find(name); }))
      continue;
    Layer layer{id, node.target, &op};
    layer.weight = largest_of(*module, weights);
    layer.bias = largest_of(*module, operand_rules(op).parts_of("bias"));
    for (const NodeId input : graph.inputs_of(id)) readers[input].push_back(layers.size());
    layers.push_back(layer);
  }
  std::vector<NodeId> producers;
  for (const auto& [producer, who] : readers) producers.push_back(producer);
  run_observed(graph, {samples}, producers, 1024, [&](NodeId node, const Tensor& result) {
    const double largest = largest_of(result);
    for (const size_t i : readers[node]) layers[i].data = std::max(layers[i].data, largest);
  });
  return layers;
}

struct Point {
  std::string format, config;
  double bits = 32, accuracy = 0, loss = 0;
};

Value config_at(const FormatRecord& record, size_t step, double largest) {
  if (!record.ladder) return Dict();
  return record.ladder(largest)[step];
}

// The network with every weighted layer in this format, its ladder's given step.
Graph quantized(const Graph& original, const std::vector<Layer>& layers, const FormatRecord& record,
                size_t step, bool weights_only, double& bits) {
  Graph graph = original;
  double total = 0, values = 0;
  for (const Layer& layer : layers) {
    Dict flat{{"name", record.name}};
    const auto put = [&](const std::string& operand, double largest) {
      if (!std::count(layer.op->operands.begin(), layer.op->operands.end(), operand)) return;
      const Value config = config_at(record, step, largest);
      for (const auto& [key, value] : config.as_dict()) flat.set(operand + "_" + key, value);
      // An operand is quantised if any of its keys is there.
      if (config.as_dict().empty() && !record.schema.fields.empty()) {
        const Field& field = record.schema.fields.back();
        flat.set(operand + "_" + field.name, field.default_value);
      }
    };
    Module& module = *graph.module_of(graph.node(layer.node));
    if (!weights_only) put("data_in", layer.data);
    put("weight", layer.weight);
    OperandRules rules = operand_rules(*layer.op);
    rules.required.clear();
    rules.unsigned_operands.clear();
    const std::vector<std::string> biases = rules.parts_of("bias");
    if (std::any_of(biases.begin(), biases.end(), [&](auto& name) { return module.find(name); }))
      put("bias", layer.bias);
    Problems problems;
    module.quantization = parse_quantization(Value(flat), rules, layer.path, problems);
    problems.throw_if_any();
    for (const std::string& name : rules.parts_of("weight")) {
      const Tensor* weight = module.find(name);
      const Quantizer* quantizer = module.quantization.find(name);
      MASE_CHECK(weight && quantizer, "layer '{}' has no quantised {}", layer.path, name);
      const auto count = static_cast<double>(weight->numel());
      total += quantizer->bits_per_value(weight->shape()) * count;
      values += count;
    }
  }
  bits = values > 0 ? total / values : 0;
  return graph;
}

std::string sweep_plot(const std::vector<Point>& points, const PlotStyle& style) {
  // The best accuracy at each number of bits, and fixed point beside it.
  std::map<double, double> best, fixed;
  for (const Point& point : points) {
    const double bits = std::round(point.bits * 4) / 4;
    best[bits] = std::max(best[bits], point.accuracy);
    if (point.format == "integer") fixed[bits] = std::max(fixed[bits], point.accuracy);
  }
  CurvePlot plot;
  plot.title = "Accuracy over average bits of a weight";
  plot.x_label = "bits";
  for (const auto& [name, curve] : {std::pair{"best format", best}, {"integer", fixed}}) {
    Curve line{name, {}, {}};
    for (const auto& [bits, accuracy] : curve) {
      line.x.push_back(bits);
      line.y.push_back(accuracy);
    }
    if (line.x.size() > 1) plot.curves.push_back(line);
  }
  return plot.curves.empty() ? "" : plot_curves(plot, style);
}

}  // namespace

std::vector<std::string> formats_of(const Value& only) {
  const auto& formats = Registry<FormatRecord>::instance();
  if (only.is_null()) return formats.names();
  std::vector<std::string> names;
  for (const std::string& name : only.as_string_list("--only"))
    names.push_back(formats.get(name, "--only").name);
  return names;
}

int format_sweep(const Arguments& arguments) {
  Settings settings = merge_settings("format", arguments);
  settings.values.dict().set("model", settings["name"]);
  const Logger log(settings, true);
  const std::vector<std::string> only = formats_of(settings["only"]);
  ExperimentSpec spec = experiment_spec(settings);
  spec.passes = {};
  spec.data.needed = true;
  Experiment experiment(std::move(spec), log.observer());
  experiment.prepare();
  if (!experiment.network().loaded)
    log.warning("no --load: the network has its initial random weights");
  const Dataset& dataset = *experiment.dataset();
  const Graph& network = experiment.graph();
  const Split& split = dataset.test.rows() ? dataset.test : dataset.validation;
  if (split.rows() == 0) throw Error(dataset.name, "has no test rows");
  check_split(split, dataset, network);
  const int64_t rows = std::min(split.rows(), settings["rows"].as_int());

  const auto start = std::chrono::steady_clock::now();
  CompileOptions compile;
  compile.batch_size = rows_at_once(network, 1024);
  compile.loss = loss_for(dataset);
  const auto evaluate = [&](const Graph& graph, Point& point) {
    Program program = Program::compile(graph, compile);
    const Score score = score_rows(program, split, 0, rows);
    point.accuracy = score.accuracy();
    point.loss = score.loss();
  };
  // Ranges come from training rows: the test rows only judge.
  const Split& calibration = dataset.train.rows() ? dataset.train : split;
  const Tensor samples = calibration.samples(0, std::min<int64_t>(calibration.rows(), 4096));
  const std::vector<Layer> layers = layers_of(network, samples);
  if (layers.empty()) throw Error(network.name, "has no layer with weights");

  std::vector<Point> points(1);
  points[0].format = "float32";
  evaluate(network, points[0]);
  for (const FormatRecord* record : Registry<FormatRecord>::instance().all()) {
    if (!std::count(only.begin(), only.end(), record->name)) continue;
    const size_t steps = record->ladder ? record->ladder(1).size() : 1;
    for (size_t step = 0; step < steps; ++step) {
      Point point{record->name, config_text(*record, config_at(*record, step, layers[0].weight))};
      const Graph graph =
          quantized(network, layers, *record, step, settings["weights_only"].as_bool(), point.bits);
      evaluate(graph, point);
      points.push_back(point);
    }
  }
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();

  Table table({"Format", "Config (first layer's weight)", "Bits", "Accuracy", "Change", "Loss"});
  List records;
  for (const Point& point : points) {
    table.add({point.format, point.config, fmt::format("{:.2f}", point.bits),
               figure_text(point.accuracy), signed_figure_text(point.accuracy - points[0].accuracy),
               figure_text(point.loss)});
    records.push_back(Dict{{"format", point.format},
                           {"config", point.config},
                           {"bits", point.bits},
                           {"accuracy", point.accuracy},
                           {"loss", point.loss}});
  }
  fmt::print("{}\n{}", table.str(), sweep_plot(points, plot_style(arguments.values)));
  fmt::print("{} configurations on {} {} rows of {} in {:.2f} s\n", points.size(), rows,
             &split == &dataset.test ? "test" : "validation", printable(dataset.name), seconds);
  if (settings.has("json")) write_json(settings["json"].as_string(), Value(records));
  return 0;
}

}  // namespace mase
