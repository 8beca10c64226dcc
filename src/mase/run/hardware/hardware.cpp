// SPDX-License-Identifier: Apache-2.0
#include "mase/run/hardware/hardware.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <utility>

#include "mase/base/random.h"
#include "mase/base/temporary_folder.h"
#include "mase/engine/program.h"
#include "mase/hardware/graph/interpreter.h"
#include "mase/hardware/prove/certificate.h"
#include "mase/hardware/tools/tool.h"
#include "mase/io/networks/importer.h"
#include "mase/ir/op.h"
#include "mase/passes/pass.h"
#include "mase/run/experiment.h"
#include "mase/train/metric.h"

namespace mase {
namespace {

// Half of the rows lie evenly over the codes of the first format, so that every code and both ends
// come; the others are standardised features, now and then one far outside every format.
std::vector<Tensor> drawn_rows(const HardwareNetwork& network, int64_t count, uint64_t seed) {
  const Graph& graph = network.network;
  std::vector<Tensor> inputs;
  Random random(seed, "hardware inputs");
  for (const NodeId input : graph.placeholders()) {
    Shape shape = {count};
    const Shape& sample = graph.node(input).sample_shape;
    shape.insert(shape.end(), sample.begin(), sample.end());
    Tensor rows(shape);
    float* const values = rows.mutable_data<float>();
    const int64_t features = element_count(sample);
    // The codes that this input is rounded to at once, if it is.
    const LoweredNetwork::Source* source = nullptr;
    size_t first = 0;
    for (const LoweredNetwork::Source& each : network.lowered.sources) {
      if (each.node == input) source = &each;
      if (source) break;
      first += each.fracs.size();
    }
    for (int64_t row = 0; row < count; ++row)
      for (int64_t i = 0; i < features; ++i) {
        double value = (random.below(50) == 0 ? 1000 : 1.5) * random.normal();
        if (source && row % 2 == 0) {
          const IntegerNode& code = network.lowered.graph.at(
              network.lowered.graph.inputs[first + static_cast<size_t>(i)]);
          const IntegerRange& range = code.range;
          const int64_t drawn =
              row == 0   ? range.low
              : row == 2 ? range.high
                         : range.low + static_cast<int64_t>(random.below(
                                           static_cast<uint64_t>(range.high - range.low) + 1));
          value = source->sign_bits ? static_cast<double>(2 * drawn - 1)
                                    : std::ldexp(static_cast<double>(drawn), -code.frac);
        }
        values[row * features + i] = static_cast<float>(value);
      }
    inputs.push_back(std::move(rows));
  }
  return inputs;
}

// The node whose value the interpreter gets wrong first, by the graph's order.
std::string first_difference(const Graph& graph, const LoweredNetwork& lowered,
                             const std::vector<Tensor>& row, const int64_t* codes) {
  const std::vector<int64_t> all = interpret_all(lowered.graph, codes);
  std::string found;
  for (const auto& value : lowered.values) {
    if (!found.empty()) break;
    const NodeId node = value.first;
    const auto& ids = value.second;
    run_observed(graph, row, {node}, 1, [&](NodeId, const Tensor& result) {
      for (size_t i = 0; i < ids.size(); ++i) {
        const IntegerNode& integer = lowered.graph.at(ids[i]);
        const double mine =
            std::ldexp(static_cast<double>(all[static_cast<size_t>(ids[i])]), -integer.frac);
        if (mine != result.item(static_cast<int64_t>(i)) && found.empty())
          found = fmt::format("{} feature {}: {} in integers, {} in the engine",
                              graph.node(node).name, i, mine, result.item(static_cast<int64_t>(i)));
      }
    });
  }
  return found;
}

// Results of these nodes for all rows, of one run.
std::map<NodeId, Tensor> observed_results(const Graph& graph, const std::vector<Tensor>& x,
                                          std::vector<NodeId> nodes) {
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  std::map<NodeId, std::vector<float>> collected;
  std::map<NodeId, Shape> shapes;
  run_observed(graph, x, nodes, 256, [&](NodeId node, const Tensor& part) {
    std::vector<float>& all = collected[node];
    all.insert(all.end(), part.data<float>(), part.data<float>() + part.numel());
    shapes[node] = part.shape();
  });
  std::map<NodeId, Tensor> results;
  for (auto& [node, values] : collected) {
    Shape shape = shapes[node];
    shape[0] = x.at(0).shape()[0];
    results.emplace(node, Tensor::of(shape, values));
  }
  return results;
}

// Layers whose sums single precision may round.
std::string inexact_layers(const LoweredNetwork& lowered) {
  std::vector<std::string> names;
  for (const LoweredNetwork::Exactness& entry : lowered.float32)
    if (!entry.exact) names.push_back(fmt::format("{} ({} bits)", entry.node, entry.bits));
  return join(names, ", ");
}

// Rows whose largest output, the first of equal ones, is their class.
std::optional<double> accuracy_of(const std::vector<double>& outputs, size_t width,
                                  const std::optional<Tensor>& labels) {
  if (!labels || width < 2) return {};
  const size_t rows = static_cast<size_t>(labels->numel());
  if (rows == 0 || outputs.size() != rows * width) return {};
  int64_t right = 0;
  for (size_t row = 0; row < rows; ++row) {
    const auto first = outputs.begin() + static_cast<std::ptrdiff_t>(row * width);
    // A row without scores has no class.
    const std::vector<float> scores(first, first + static_cast<std::ptrdiff_t>(width));
    right += arg_max(scores.data(), static_cast<int64_t>(width)) == labels->data<int32_t>()[row];
  }
  return static_cast<double>(right) / static_cast<double>(rows);
}

Value exactness_value(const LoweredNetwork& lowered) {
  List list;
  for (const LoweredNetwork::Exactness& entry : lowered.float32)
    list.push_back(
        Dict{{"node", entry.node}, {"sum_bits", entry.bits}, {"exact_in_float32", entry.exact}});
  return list;
}

// What the claims of a manifest rest on.
std::vector<std::string> trusted_base() {
  return {
      "comparisons: the engine and the interpreter of integers, on the rows that are named",
      "proofs: how Yosys reads SystemVerilog (read_verilog, proc, flatten), and the checker that "
      "holds its netlist and the network's own graph to certificate.json",
      "simulations: the simulator, and the rows of sim/vectors.hex"};
}

std::string proof_text(const ModuleProof& proof) {
  std::string text = fmt::format(
      "Yosys reads the same graph, for all inputs: {} sums by their affine forms, {} functions by "
      "all values of their operands and {} as functions of their bits, {} slices and registers by "
      "their bits; every port in its order, every path with the same number of registers",
      proof.sums, proof.functions, proof.diagrams, proof.wires);
  if (!proof.skipped.empty())
    text += fmt::format("; {} functions have too many operand bits and were only simulated: {}",
                        proof.skipped.size(), join(proof.skipped, ", "));
  if (proof.network.answer == SameGraph::Answer::same)
    text += fmt::format(
        "; that graph is the network's own, for all inputs: the same sums of {} functions that are "
        "known by all their values and {} by what they do to which sums",
        proof.network.tabulated, proof.network.by_form);
  else if (proof.network.answer == SameGraph::Answer::unknown)
    text += fmt::format("; that it is the network's own was compared on rows only: {}",
                        proof.network.reason);
  return text;
}

// How the stages of a stream wait for one another.
std::string flow_text(const std::optional<CheckedFlow>& flow) {
  if (!flow) return "how they wait for one another is compared by simulation (ch simulate)";
  if (!flow->fault.empty())
    throw Error(flow->module, "does not wait for others as it should: " + flow->fault);
  if (!flow->proved())
    return "how they wait for one another is compared by simulation: " + join(flow->open, "; ");
  return fmt::format(
      "no queue overflows and no row ever stops, whoever stalls: {} stages and {} queues in all {} "
      "states of their control, and what connects them",
      flow->stages, flow->queues, flow->states);
}

// A batch norm behind a rounded layer has no exact integers: it goes into the layer's weights,
// which are rounded anew. What is lowered, compared and measured is the network with these.
void fold_batch_norms(HardwareNetwork& hardware, const Observer& observer) {
  Graph& graph = hardware.network;
  const bool any = std::any_of(graph.order().begin(), graph.order().end(), [&](NodeId id) {
    const Node& node = graph.node(id);
    if (node.kind != NodeKind::call_module) return false;
    const Module* const module = graph.module_of(node);
    if (!module || module->op.empty() || !find_op(module->op).channel_norm) return false;
    const Node& before = graph.node(graph.inputs_of(id).front());
    return before.kind == NodeKind::call_module && graph.quantization_of(before).active();
  });
  if (!any) return;
  const PassRecord& pass = Registry<PassRecord>::instance().get("fuse_batch_norm");
  PassContext context;
  const PassResult folded = pass.run(graph, Value(Dict{{"quantized", true}}), context);
  for (const Value& pair : folded.data["fused"].as_list())
    hardware.folded.push_back(pair.as_string());
  if (!hardware.folded.empty() && observer.log)
    observer.log(LogLevel::warning,
                 fmt::format("batch norms were folded into rounded layers, whose weights are "
                             "rounded anew: {}; figures are of that network",
                             join(hardware.folded, ", ")));
}

// Steps and clips that training found become numbers, of so few significant bits that sums of their
// products stay short.
void freeze_scales(Graph& graph, const Observer& observer) {
  constexpr int64_t bits = 3, bias_width = 12;
  PassContext context;
  const PassResult result =
      run_pass(graph, "freeze_scales", Dict{{"bits", bits}, {"bias_width", bias_width}}, context);
  if (!result.changed || !observer.log) return;
  observer.log(LogLevel::warning,
               fmt::format("learned steps and clips were rounded to {} significant bits: {}; "
                           "figures are of that network (the pass freeze_scales keeps more)",
                           bits, join(result.data["frozen"].as_dict().keys(), ", ")));
}

}  // namespace

void make_integers(HardwareNetwork& hardware, const Observer& observer) {
  fold_batch_norms(hardware, observer);
  freeze_scales(hardware.network, observer);
  hardware.lowered = lower(hardware.network);
  if (const std::vector<std::string> left = layers_in_software(hardware.network);
      !left.empty() && observer.log)
    observer.log(LogLevel::warning,
                 fmt::format("not quantised, so not in hardware and in none of its figures: {}",
                             join(left, ", ")));
}

HardwareNetwork load_hardware_network(const HardwareSpec& spec, const Observer& observer) {
  HardwareNetwork result;
  const std::string& path = spec.network.load;
  result.origin = path;
  const bool foreign = spec.network.model.empty() && std::filesystem::is_regular_file(path);
  if (const ImporterRecord* importer = foreign ? find_importer(path) : nullptr) {
    if (!spec.passes.calls.empty() || !spec.data.name.empty())
      throw Error(path, "is another program's file",
                  fmt::format("turn it into an .mz first: ch import {}", path));
    ImportedNetwork imported = import_network(path, importer->name);
    result.network = std::move(imported.graph);
    result.integers_given = imported.integers;
  } else {
    Experiment experiment(
        {.network = spec.network, .data = spec.data, .passes = spec.passes, .seed = spec.seed},
        observer);
    experiment.prepare();
    const Graph before = experiment.graph();
    experiment.apply_passes();
    result.network = experiment.graph();
    if (const Dataset* dataset = spec.drawn ? nullptr : experiment.dataset()) {
      result.test_rows = dataset->test.samples();
      result.rows_origin = fmt::format("{} test rows of {} ({})", dataset->test.rows(),
                                       printable(dataset->name), printable(dataset->variant));
      if (dataset->classification) result.labels = dataset->test.labels;
      if (!spec.passes.calls.empty() && before.outputs().size() == 1) {
        const Tensor outputs =
            observed_results(before, {*result.test_rows}, before.outputs()).begin()->second;
        const auto rows = static_cast<size_t>(std::max<int64_t>(1, outputs.shape()[0]));
        const auto values = outputs.values<float>();
        result.accuracy_before =
            accuracy_of({values.begin(), values.end()}, values.size() / rows, result.labels);
      }
    }
  }
  make_integers(result, observer);
  return result;
}

Compared compare_with_engine(const HardwareNetwork& network, const HardwareSpec& spec) {
  const Graph& graph = network.network;
  const LoweredNetwork& lowered = network.lowered;
  Compared result;
  const std::vector<Tensor> x = network.test_rows ? std::vector<Tensor>{*network.test_rows}
                                                  : drawn_rows(network, spec.rows, spec.seed);
  const std::vector<NodeId> placeholders = graph.placeholders();
  if (x.size() != placeholders.size())
    throw Error(network.origin,
                fmt::format("takes {} inputs, rows of the data set have one", placeholders.size()),
                "give no --dataset: rows are drawn");
  result.origin = network.test_rows ? network.rows_origin : fmt::format("{} drawn rows", spec.rows);
  // Inputs and outputs of one and the same run: what stays in software is single precision, and
  // another program may round it differently.
  std::vector<NodeId> observed = graph.outputs();
  for (const LoweredNetwork::Source& source : lowered.sources)
    if (graph.node(source.node).kind != NodeKind::placeholder) observed.push_back(source.node);
  const std::map<NodeId, Tensor> results = observed_results(graph, x, observed);
  std::vector<Tensor> values;
  for (const LoweredNetwork::Source& source : lowered.sources) {
    const auto input = std::find(placeholders.begin(), placeholders.end(), source.node);
    values.push_back(input == placeholders.end()
                         ? results.at(source.node)
                         : x[static_cast<size_t>(input - placeholders.begin())]);
  }
  result.inputs = input_codes(lowered, values);
  const std::vector<double> mine =
      output_values(lowered.graph, IntegerProgram(lowered.graph).run(result.inputs));
  const size_t rows = static_cast<size_t>(x[0].shape()[0]), width = lowered.graph.outputs.size();
  if (graph.outputs().size() == 1) result.accuracy = accuracy_of(mine, width, network.labels);
  size_t offset = 0;
  for (const NodeId node : graph.outputs()) {
    const Tensor& output = results.at(node);
    const size_t own = static_cast<size_t>(output.numel()) / std::max<size_t>(1, rows);
    for (size_t row = 0; row < rows; ++row)
      for (size_t i = 0; i < own; ++i) {
        const double engine = output.item(static_cast<int64_t>(row * own + i));
        if (engine == mine[row * width + offset + i]) continue;
        const std::string inexact = inexact_layers(lowered);
        if (network.integers_given && !inexact.empty()) {
          result.reason = fmt::format("single precision is too narrow for the sums of {}", inexact);
          return result;
        }
        std::vector<Tensor> single;
        for (const Tensor& input : x) {
          const size_t per_row = static_cast<size_t>(input.numel()) / rows;
          Shape one = input.shape();
          one[0] = 1;
          single.push_back(
              Tensor::of(one, std::vector<float>(input.data<float>() + row * per_row,
                                                 input.data<float>() + (row + 1) * per_row)));
        }
        const std::string why =
            inexact.empty() ? ""
                            : fmt::format(
                                  " (single precision is too narrow for the sums of {}: give "
                                  "them fewer bits)",
                                  inexact);
        throw Error(fmt::format("row {}, output {}", row, offset + i),
                    fmt::format("the engine has {}, integers have {}{}", engine,
                                mine[row * width + offset + i], why),
                    first_difference(graph, lowered, single,
                                     result.inputs.data() + row * lowered.graph.inputs.size()));
      }
    offset += own;
  }
  result.engine = true;
  return result;
}

EmitResult emit_hardware(const HardwareNetwork& network, const Compared& compared,
                         const DesignOptions& options, const std::string& folder, bool prove) {
  EmitResult result;
  result.design = make_design(network.lowered.graph, options);
  const DesignRows rows = rows_of(result.design.graph, compared.inputs, compared.origin);
  const size_t held = hold_to_lowered(result.design, network.lowered.graph, rows);
  const EmitterRecord& style = Registry<EmitterRecord>::instance().get(options.style, "--style");
  Dict facts{{"source", network.origin}};
  facts.set("compared",
            Dict{{"rows", compared.origin},
                 {"engine", compared.engine ? "engine = integers on every row, 0 mismatches"
                                            : "not compared: " + compared.reason},
                 {"integers", fmt::format("lowered = {} on these and on drawn rows over all input "
                                          "codes, {} in all: 0 mismatches",
                                          style.as_lowered ? "emitted" : "optimised", held)}});
  facts.set("trusted", Value::of(trusted_base()));
  result.overflow = find_overflow(network.lowered, compared.inputs, compared.origin, options.seed);
  facts.set("overflow", to_value(result.overflow));
  if (compared.accuracy)
    facts.set("accuracy", Dict{{"rows", compared.origin}, {"value", *compared.accuracy}});
  if (!network.folded.empty()) facts.set("folded", Value::of(network.folded));
  facts.set("software", Value::of(network.lowered.software));
  facts.set("float32", exactness_value(network.lowered));
  const auto tables = [](const IntegerGraph& graph) {
    return std::count_if(graph.nodes.begin(), graph.nodes.end(),
                         [](const IntegerNode& node) { return node.op->name == "table"; });
  };
  const auto neurons = tables(result.design.graph) - tables(network.lowered.graph);
  const auto write = [&](const std::string& proof) {
    std::string text;
    if (!style.as_lowered && !style.optimize)
      text =
          "sums that were built anew have the linear form of the network's own, for all inputs; ";
    if (!style.as_lowered && neurons > 0)
      text += fmt::format(
          "{} neurons are tables, computed for all values that their operands can have; ", neurons);
    facts.set("proved", text + proof);
    write_design(folder, design_files(result.design, rows, facts));
  };
  const auto unproved = [&](std::string reason) {
    result.proof_text = "not read back: " + std::move(reason);
    write(result.proof_text);
    return std::move(result);
  };
  if (!prove) return unproved("--no-prove");
  if (!tool_exists("yosys")) return unproved("yosys is not installed (apt-get install yosys)");
  // Proved before anything is written: there is the whole folder or none.
  const TemporaryFolder apart((std::filesystem::temp_directory_path() / "mase-proof-").string());
  write_design(apart.path() + "/design", result.design.emitted.files);
  const std::vector<GraphModule> modules = graph_modules(result.design);
  result.proof.emplace();
  const std::vector<ModuleClaim> claims = module_claims(certificate_of(modules), folder);
  for (const CheckedModule& module : check_modules(claims, apart.path() + "/design")) {
    if (!module.proof.fault.empty())
      throw Error(fmt::format("{}/rtl/{}.sv", folder, module.module),
                  "the SystemVerilog is not the graph: " + module.proof.fault);
    result.proof->sums += module.proof.sums;
    result.proof->functions += module.proof.functions;
    result.proof->diagrams += module.proof.diagrams;
    result.proof->wires += module.proof.wires;
    if (module.proof.network.answer != SameGraph::Answer::not_asked)
      result.proof->network = module.proof.network;
    result.proof->skipped.insert(result.proof->skipped.end(), module.proof.skipped.begin(),
                                 module.proof.skipped.end());
  }
  result.proof_text = proof_text(*result.proof);
  if (result.design.emitted.signals.empty())
    result.proof_text = fmt::format(
        "of {} modules of sums and functions: {}; {}; what multiplies by weights from a memory and "
        "what lines keep is compared by simulation (ch simulate)",
        modules.size(), result.proof_text,
        flow_text(
            check_flow(Value(result.design.emitted.facts)["flow"], apart.path() + "/design")));
  write(result.proof_text);
  return result;
}

}  // namespace mase
