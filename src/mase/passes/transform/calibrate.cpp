// SPDX-License-Identifier: Apache-2.0
// calibrate: chooses the fraction bits of every operand from the values it takes, for given widths,
// and writes the choice as a TOML file that `ch transform` takes. Nobody has to guess 8/4.
//   min_max, quantile, n_sigma: the most fraction bits whose range still holds the profiled one
//   mse: least squared error        kl: least divergence between the histograms before and after,
//   among the choices that keep 99.9 % of the values in range
#include <algorithm>
#include <cmath>
#include <map>

#include "mase/base/fields.h"
#include "mase/base/table.h"
#include "mase/ir/layer_text.h"
#include "mase/passes/metadata.h"
#include "mase/passes/observe.h"
#include "mase/passes/output.h"
#include "mase/passes/quantize_plan.h"
#include "mase/passes/select.h"
#include "mase/passes/statistics/moments.h"

namespace mase::calibrate_pass {
namespace {

constexpr size_t most_values = size_t{1} << 18;  // of one operand; more would not change a choice

// The values that share a number of fraction bits.
struct Values {
  std::vector<float> values;
  bool is_signed = true;
  int width = 8;
  int frac = 0;
  double squared_error = 0, power = 0;

  NumberType type(int with_frac) const {
    return {Fixed{.is_signed = is_signed, .width = width, .frac = with_frac}};
  }
};

// An operand of a node: all of it, or its groups.
struct Operand {
  std::string granularity = "tensor";  // as the config says it
  Granularity groups;
  bool is_signed = true;
  int width = 8;
  std::vector<Values> chosen;

  void collect(const Tensor& tensor) {
    const Grouping grouping = mase::grouping(tensor.shape(), groups);
    chosen.resize(static_cast<size_t>(grouping.groups), Values{{}, is_signed, width});
    const float* data = tensor.data<float>();
    const size_t most = std::max<size_t>(1, most_values / std::max<size_t>(1, chosen.size()));
    grouping.for_each_run([&](int64_t g, int64_t at, size_t count) {
      std::vector<float>& values = chosen[static_cast<size_t>(g)].values;
      const size_t room = most - std::min(most, values.size());
      values.insert(values.end(), data + at, data + at + std::min(room, count));
    });
  }
  // How many rows of this shape it takes until every group has its values; further ones are not
  // looked at.
  int64_t useful_rows(const Shape& row) const {
    const int64_t elements = element_count(row), sharing = mase::grouping(row, groups).groups;
    const int64_t wanted =
        std::max<int64_t>(1, int64_t{most_values} / std::max<int64_t>(1, sharing));
    const int64_t given = std::max<int64_t>(1, elements / std::max<int64_t>(1, sharing));
    return (wanted + given - 1) / given;
  }
  // Root mean square, relative to the values'.
  double error() const {
    double squares = 0, power = 0;
    for (const Values& group : chosen) {
      squares += group.squared_error;
      power += group.power;
    }
    return power > 0 ? std::sqrt(squares / power) : 0;
  }
  Value frac_width() const {
    if (chosen.size() == 1) return chosen.front().frac;
    List list;
    for (const Values& group : chosen) list.push_back(group.frac);
    return list;
  }
  std::string frac_text() const {
    const auto [low, high] = std::minmax_element(
        chosen.begin(), chosen.end(),
        [](const Values& one, const Values& other) { return one.frac < other.frac; });
    return low->frac == high->frac ? std::to_string(low->frac)
                                   : fmt::format("{} .. {}", low->frac, high->frac);
  }
};

// The range that holds this share of the values at each end.
std::pair<double, double> range_of(const Values& operand, double share) {
  std::vector<float> sorted = operand.values;
  std::sort(sorted.begin(), sorted.end());
  const auto at = [&](double q) {
    return static_cast<double>(
        sorted[static_cast<size_t>(std::llround(q * static_cast<double>(sorted.size() - 1)))]);
  };
  return {at(1 - share), at(share)};
}

std::pair<double, double> range_of(const Values& operand, const Value& args) {
  const std::string& method = args["method"].as_string();
  if (method != "n_sigma")
    return range_of(operand, method == "quantile" ? args["quantile"].as_double() : 1.0);
  MeanVariance moments;
  moments.add_run(operand.values.data(), static_cast<int64_t>(operand.values.size()));
  const double reach =
      args["num_sigma"].as_double() * std::sqrt(std::max(0.0, moments.population_variance()));
  return {moments.mean - reach, moments.mean + reach};
}

// The most fraction bits at which the format still reaches both ends of the range.
int frac_for_range(const Values& operand, double low, double high, int least, int most) {
  for (int frac = most; frac > least; --frac) {
    const Limits limits = *limits_of(operand.type(frac));
    // Half a step beyond the end still rounds to it.
    const double half = limits.smallest_positive / 2;
    if (high <= limits.largest + half && (!operand.is_signed || low >= limits.lowest - half))
      return frac;
  }
  return least;
}

double squared_error(const Values& operand, int frac) {
  const Quantizer quantizer = typed_quantizer(operand.type(frac));
  std::vector<float> rounded(operand.values.size());
  quantizer.quantize(operand.values.data(), rounded.data(), {static_cast<int64_t>(rounded.size())});
  double sum = 0;
  for (size_t i = 0; i < rounded.size(); ++i) {
    // An unsigned operand stands before an op that drops negative values anyway.
    const double wanted = operand.is_signed ? operand.values[i] : std::max(0.0f, operand.values[i]);
    sum += (wanted - rounded[i]) * (wanted - rounded[i]);
  }
  return sum;
}

double divergence(const Values& operand, int frac) {
  constexpr size_t bins = 1024;
  const auto [low, high] = std::minmax_element(operand.values.begin(), operand.values.end());
  const double start = *low, span = std::max(1e-30, static_cast<double>(*high) - *low);
  const Quantizer quantizer = typed_quantizer(operand.type(frac));
  std::vector<float> rounded(operand.values.size());
  quantizer.quantize(operand.values.data(), rounded.data(), {static_cast<int64_t>(rounded.size())});
  std::vector<double> before(bins, 0), after(bins, 0);
  const auto bin = [&](double value) {
    return static_cast<size_t>(std::clamp((value - start) / span * bins, 0.0, bins - 1.0));
  };
  // A rounded value stands for all values that round to it: its count is spread over their bins.
  // Values beyond the range are lost to their own bins and pile up in the last ones.
  std::map<float, std::vector<size_t>> owners;
  for (size_t i = 0; i < rounded.size(); ++i) {
    const double value = operand.is_signed ? operand.values[i] : std::max(0.0f, operand.values[i]);
    before[bin(value)] += 1;
    const bool clipped = value < *quantizer.lowest || value > *quantizer.largest;
    owners[rounded[i]].push_back(bin(clipped ? static_cast<double>(rounded[i]) : value));
  }
  for (auto& [value, places] : owners) {
    std::vector<size_t> distinct = places;
    std::sort(distinct.begin(), distinct.end());
    distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
    for (const size_t place : distinct)
      after[place] += static_cast<double>(places.size()) / static_cast<double>(distinct.size());
  }
  double sum = 0;
  const double total = static_cast<double>(rounded.size());
  for (size_t i = 0; i < bins; ++i)  // half a count stands for "never seen"
    if (before[i] > 0) sum += before[i] / total * std::log(before[i] / std::max(after[i], 0.5));
  return sum;
}

void choose(Values& operand, const Value& args) {
  const int least = -16, most = operand.width + 16;
  const std::string& method = args["method"].as_string();
  if (operand.values.empty()) {
    operand.frac = operand.width / 2;
    return;
  }
  if (method == "mse" || method == "kl") {
    const auto [low, high] = std::minmax_element(operand.values.begin(), operand.values.end());
    // Fewer fraction bits than the whole range needs can only lose.
    const int start = frac_for_range(operand, *low, *high, least, most);
    double best = INFINITY;
    operand.frac = start;
    // The divergence knows no distances: left alone it would clip the tails that matter most, so it
    // may choose only where all but a thousandth of the values stay in range.
    int last = std::min(most, start + operand.width);
    if (method == "kl") {
      const auto [inner_low, inner_high] = range_of(operand, 0.999);
      last = frac_for_range(operand, inner_low, inner_high, least, most);
    }
    for (int frac = start; frac <= last; ++frac) {
      const double cost =
          method == "mse" ? squared_error(operand, frac) : divergence(operand, frac);
      if (cost < best) {
        best = cost;
        operand.frac = frac;
      }
    }
  } else {
    const auto [low, high] = range_of(operand, args);
    operand.frac = frac_for_range(operand, low, high, least, most);
  }
  for (const float value : operand.values) operand.power += static_cast<double>(value) * value;
  operand.squared_error = squared_error(operand, operand.frac);
}

// Of an op's activations.
int64_t channel_axis(const OpRecord& op) {
  if (op.product) return op.product->channel_axis;
  return op.channel_norm ? op.channel_norm->channel_axis : -1;
}

// The layers that multiply by a weight, if nothing else is asked for.
std::vector<NodeId> targets(const Graph& graph, const Value& args, const std::string& path,
                            Problems& problems) {
  if (!args["target_nodes"].is_null())
    return select_nodes(graph, select_by(args["by"]), args["target_nodes"], path, problems);
  std::vector<NodeId> nodes;
  for (const NodeId id : graph.order()) {
    const OpRecord* op = op_of(graph, graph.node(id));
    if (op && op->multiplies_weights()) nodes.push_back(id);
  }
  return nodes;
}

void check(const Graph& graph, const Value& args, const std::string& path, Problems& problems) {
  for (const NodeId id : targets(graph, args, path + ".target_nodes", problems))
    if (op_of(graph, graph.node(id))->operands.empty())
      problems.add(Error(
          args["target_nodes"].position(), path + ".target_nodes",
          fmt::format("'{}' has no operand worth quantising", mase_op(graph, graph.node(id)))));
}

PassResult run(Graph& graph, const Value& args, PassContext& context) {
  Problems problems;
  const std::vector<NodeId> nodes = targets(graph, args, "calibrate", problems);
  problems.throw_if_any();
  std::map<NodeId, std::map<std::string, Operand>> operands;
  std::vector<NodeId> sources;
  // `part`: one of the tensors the operand stands for, or itself.
  const auto operand_of = [&](NodeId id, const std::string& name,
                              const std::string& part) -> Operand& {
    Operand& operand = operands[id][part];
    const OpRecord& op = *op_of(graph, graph.node(id));
    operand.width = static_cast<int>(args[name + "_width"].as_int());
    operand.is_signed =
        std::count(op.unsigned_operands.begin(), op.unsigned_operands.end(), name) == 0;
    operand.granularity = args[name + "_granularity"].as_string();
    // As the config will be read: rows of a parameter, features of an activation.
    const bool batch = is_activation(name);
    if (operand.granularity == "row")
      operand.groups = {Granularity::Kind::axis, batch ? channel_axis(op) : 0};
    else if (operand.granularity == "element")
      operand.groups = {Granularity::Kind::element, 0, batch};
    return operand;
  };
  for (const NodeId id : nodes) {
    const Node& node = graph.node(id);
    if (const Module* module = graph.module_of(node))
      for (const char* name : {"weight", "bias"}) {
        const OperandRules rules = operand_rules(*op_of(graph, node));
        if (!std::count(rules.names.begin(), rules.names.end(), name)) continue;
        for (const std::string& part : rules.parts_of(name))
          if (const Tensor* tensor = module->find(part))
            operand_of(id, name, part).collect(*tensor);
      }
    for (const NodeId input : graph.inputs_of(id)) sources.push_back(input);
  }
  const auto operand_at = [&](NodeId id, size_t input) -> Operand& {
    const std::string name = operand_of_input(graph, graph.node(id), input);
    return operand_of(id, name, name);
  };
  const std::vector<Shape> shapes = infer_shapes(graph, 1);
  int64_t useful = 1;
  for (const NodeId id : nodes) {
    const std::vector<NodeId> inputs = graph.inputs_of(id);
    for (size_t i = 0; i < inputs.size(); ++i)
      useful =
          std::max(useful, operand_at(id, i).useful_rows(shapes[static_cast<size_t>(inputs[i])]));
  }
  const std::vector<Tensor> samples =
      sample_inputs(graph, context, std::min(args["num_samples"].as_int(), useful));
  const int64_t rows = samples.at(0).dim(0);
  observe_nodes(graph, samples, sources, [&](NodeId source, const Tensor& result) {
    for (const NodeId id : nodes) {
      const std::vector<NodeId> inputs = graph.inputs_of(id);
      for (size_t i = 0; i < inputs.size(); ++i)
        if (inputs[i] == source) operand_at(id, i).collect(result);
    }
  });

  Table table({"Node", "Operand", "Width", "Fraction bits", "Relative error"});
  Dict rules{{"by", "name"}, {"default", Dict{{"config", Dict{{"name", "NA"}}}}}};
  for (const NodeId id : nodes) {
    Dict config{{"name", "integer"}};
    const OperandRules known = operand_rules(*op_of(graph, graph.node(id)));
    std::vector<std::string> names = {"data_in"};
    for (const char* joint : {"weight", "bias"})
      for (const std::string& part : known.parts_of(joint)) names.push_back(part);
    for (const std::string& name : names) {
      const auto found = operands[id].find(name);
      if (found == operands[id].end()) continue;
      Operand& operand = found->second;
      if (operand.chosen.empty()) continue;
      for (Values& group : operand.chosen) choose(group, args);
      config.set(fmt::format("{}_width", name), operand.width);
      config.set(fmt::format("{}_frac_width", name), operand.frac_width());
      if (operand.chosen.size() > 1)
        config.set(fmt::format("{}_granularity", name), operand.granularity);
      table.add({graph.node(id).name, name, std::to_string(operand.width), operand.frac_text(),
                 fmt::format("{:.5f}", operand.error())});
    }
    rules.set(graph.node(id).name, Dict{{"config", config}});
  }
  print(context, table.str(TableStyle::orgtbl));
  const Value file(Dict{{"passes", Dict{{"quantize", rules}}}});
  const std::string path =
      save_text(context, args["file_name"].as_string(),
                fmt::format("# Fraction bits chosen by calibrate (method {}, {} rows).\n",
                            args["method"].as_string(), rows) +
                    to_toml(file));
  print(context, fmt::format("written to {}\n", path));
  Dict result{{"config", rules}, {"file", path}};
  bool changed = false;
  if (args["apply"].as_bool()) {
    result.set("quantize", run_pass(graph, "quantize", Value(rules), context).data);
    changed = true;
  }
  return {std::move(result), changed};
}

Field width_field(const char* operand) {
  return integer_field(fmt::format("{}_width", operand), fmt::format("bits of {}", operand), 8)
      .between(2, 32);
}

Field granularity_field(const char* operand, const char* groups) {
  return text_field(fmt::format("{}_granularity", operand),
                    fmt::format("what gets fraction bits of its own: all of {}, {}, or each value",
                                operand, groups),
                    "tensor", {"tensor", "row", "element"});
}

const Register<PassRecord> registered{{
    .name = "calibrate",
    .aliases = {"calibrate_transform_pass"},
    .pass_kind = PassKind::transform,
    .summary = "Chooses fraction bits from the values operands take",
    .schema = {{
        by_field(),
        list_field("target_nodes",
                   "what is calibrated; all layers that multiply by a weight if not given"),
        text_field("method", "how a range is chosen", "mse",
                   {"min_max", "quantile", "n_sigma", "mse", "kl"}),
        width_field("data_in"),
        width_field("weight"),
        width_field("bias"),
        granularity_field("data_in", "each feature"),
        granularity_field("weight", "each output's row"),
        granularity_field("bias", "each output"),
        number_field("quantile", "share of values inside the range (method quantile)", 0.999)
            .between(0.5, 1),
        number_field("num_sigma", "standard deviations inside the range (method n_sigma)", 4)
            .from(0.1),
        integer_field("num_samples", "rows that run through the network", 1024).from(1),
        text_field("file_name", "where the choice is written", "calibrated.toml"),
        boolean_field("apply", "quantise with the choice at once", false),
    }},
    .check = check,
    .run = run,
    .tolerance = -1,
}};

}  // namespace
}  // namespace mase::calibrate_pass
