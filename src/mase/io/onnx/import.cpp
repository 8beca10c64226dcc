// SPDX-License-Identifier: Apache-2.0
#include "mase/io/onnx/import.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <utility>

#include "mase/base/text.h"
#include "mase/io/checkpoint_file.h"
#include "mase/io/onnx/describe.h"
#include "mase/io/onnx/inline_functions.h"
#include "mase/io/onnx/operator.h"
#include "mase/io/onnx/place_formats.h"
#include "mase/io/onnx/read_model.h"

namespace mase::onnx {
namespace {

constexpr size_t most_nodes = 20'000;
constexpr int64_t oldest_operator_set = 7;
constexpr const char* own_producer = "mase";

bool is_prime(int64_t number) {
  for (int64_t i = 2; i * i <= number; ++i)
    if (number % i == 0) return false;
  return true;
}

// A number that stands for the batch: a prime that divides no size in the file, so that whatever
// size comes out of shape inference says itself whether the batch is in it.
int64_t batch_marker(const GraphData& graph) {
  std::set<int64_t> sizes;
  for (const TensorData& tensor : graph.initializers)
    sizes.insert(tensor.dims.begin(), tensor.dims.end());
  for (const ValueInfo& input : graph.inputs)
    if (input.shape)
      for (const Dimension& dimension : *input.shape)
        if (dimension.size) sizes.insert(*dimension.size);
  for (int64_t candidate = 1'000'003;; ++candidate) {
    if (!is_prime(candidate)) continue;
    if (std::none_of(sizes.begin(), sizes.end(),
                     [&](int64_t size) { return size != 0 && size % candidate == 0; }))
      return candidate;
  }
}

class Importer {
 public:
  Importer(const Model& model, ExternalFiles& files, const std::string& place, MemoryBudget& budget)
      : source_(model), files_(files), place_(place), budget_(budget) {
    model_.place = place;
    model_.budget = &budget;
  }

  Imported run() {
    check();
    model_.batch = batch_marker(source_.graph);
    for (const TensorData& tensor : source_.graph.initializers)
      if (!initializers_.emplace(tensor.name, &tensor).second)
        throw Error(place_, fmt::format("two initialisers are named '{}'", printable(tensor.name)));
    count_uses(source_.graph);
    add_inputs();
    problems_.throw_if_any();
    remaining_ = model_.uses;
    for (const NodeData& node : source_.graph.nodes) {
      convert(node);
      release(node.inputs);
    }
    report();
    add_outputs();
    remove_unused();
    place_formats(model_);
    try {
      verify(model_.graph);
    } catch (const Error& error) {
      throw Error(place_, printable(error.what()));
    }
    return {std::move(model_.graph), std::move(model_.notes)};
  }

 private:
  void check() const {
    const GraphData& graph = source_.graph;
    if (graph.nodes.size() > most_nodes)
      throw Error(place_,
                  fmt::format("has {} nodes; the most is {}", graph.nodes.size(), most_nodes));
    if (graph.sparse_initializers > 0)
      throw Error(place_, "has sparse initialisers", "write them as dense tensors");
    if (source_.operator_sets.empty())
      throw Error(place_, "imports no operator set: its operators have no version",
                  "the file is damaged");
    if (const auto version = source_.operator_set(""); version && *version < oldest_operator_set)
      throw Error(place_,
                  fmt::format("uses operator set {}; the oldest that is read is {}", *version,
                              oldest_operator_set),
                  "convert it with onnx.version_converter");
  }

  void count_uses(const GraphData& graph) {
    for (const NodeData& node : graph.nodes) {
      for (const std::string& input : node.inputs) ++model_.uses[input];
      for (const Attribute& attribute : node.attributes)
        if (attribute.graph) count_uses(*attribute.graph);
    }
    for (const ValueInfo& output : graph.outputs) ++model_.uses[output.name];
  }

  void add_inputs() {
    for (const ValueInfo& input : source_.graph.inputs) {
      if (initializers_.count(input.name)) continue;
      add_input(input);
    }
    if (model_.graph.placeholders().empty() && problems_.empty())
      throw Error(place_, "has no input: there is nothing to run it on");
  }

  void add_input(const ValueInfo& input) {
    const std::string where = fmt::format("{}: input '{}'", place_, printable(input.name));
    const auto refuse = [&](const std::string& cause, const std::string& remedy = "") {
      problems_.add(Error(where, cause, remedy));
    };
    if (!input.is_tensor) return refuse("is no tensor");
    if (!input.shape) return refuse("has no shape", "export the model with its inputs' shapes");
    if (input.shape->empty()) return refuse("is a scalar: it has no batch");
    const auto dtype = dtype_of(input.element);
    if (!dtype) return refuse(fmt::format("holds {}", element_name(input.element)));
    const Dimension& first = input.shape->front();
    const bool fixed = first.size && *first.size > 0;
    if (model_.graph.placeholders().empty())
      model_.fixed_batch = fixed ? *first.size : 0;
    else if (fixed && *first.size != model_.fixed_batch)
      return refuse(fmt::format("begins with {} where the first input has a batch of {}",
                                *first.size, model_.fixed_batch));
    Shape sample;
    for (size_t i = 1; i < input.shape->size(); ++i) {
      const Dimension& dimension = (*input.shape)[i];
      if (!dimension.size || *dimension.size <= 0)
        return refuse(fmt::format("dimension {}{} has no fixed size", i,
                                  dimension.parameter.empty()
                                      ? ""
                                      : fmt::format(" ('{}')", printable(dimension.parameter))),
                      "export the model with fixed sizes for all but the batch");
      sample.push_back(*dimension.size);
    }
    try {
      element_count(sample);
    } catch (const Error& error) {
      return refuse(error.what());
    }
    Operand operand{.shape = sample, .element = input.element};
    operand.shape.insert(operand.shape.begin(), model_.batch);
    const bool real = *dtype == DType::f64 || *dtype == DType::f32 || *dtype == DType::f16 ||
                      *dtype == DType::bf16;
    operand.node = model_.graph.add_placeholder(input.name.empty() ? "x" : input.name, sample,
                                                real                       ? DType::f32
                                                : *dtype == DType::boolean ? DType::boolean
                                                                           : DType::i64);
    if (!model_.values.emplace(input.name, std::move(operand)).second) refuse("is listed twice");
  }

  // Whether the value is known; an initialiser is read when it is used first.
  bool available(const std::string& name) {
    if (name.empty() || model_.values.count(name)) return true;
    const auto found = initializers_.find(name);
    if (found == initializers_.end()) return false;
    const Constant constant = read_constant(*found->second, files_, budget_, place_);
    Operand operand{.shape = constant.tensor.shape(), .element = constant.element};
    operand.source = name;
    operand.constant = constant;
    model_.values.emplace(name, std::move(operand));
    return true;
  }

  void convert(const NodeData& node) {
    NodeContext context(model_, node, version_of(node.domain));
    try {
      for (const std::string& input : node.inputs) {
        if (available(input)) continue;
        if (failed_.count(input)) {  // its own problem is told already
          for (const std::string& output : node.outputs) failed_.insert(output);
          return;
        }
        context.fail(fmt::format("uses '{}', which nothing before it gives", printable(input)),
                     "the file is damaged");
      }
      const OnnxOperator* found =
          Registry<OnnxOperator>::instance().find(operator_name(node.domain, node.op));
      if (!found)
        context.fail(fmt::format("there is no such operator here (domain '{}', operator set {})",
                                 printable(node.domain.empty() ? "ai.onnx" : node.domain),
                                 context.version()),
                     "see ch --info onnx for those that are read");
      found->convert(context);
    } catch (const Error& error) {
      problems_.add(error);
      for (const std::string& output : node.outputs)
        if (!model_.values.count(output)) failed_.insert(output);
    }
  }

  // Files of QONNX often import only the standard domain.
  int64_t version_of(const std::string& domain) const {
    if (const auto version = source_.operator_set(domain)) return *version;
    return 1;
  }

  void report() const {
    constexpr size_t most = 20;
    if (problems_.errors().size() <= most) return problems_.throw_if_any();
    std::vector<Error> shown(problems_.errors().begin(), problems_.errors().begin() + most);
    shown.emplace_back(place_, fmt::format("and {} more nodes that cannot be converted",
                                           problems_.errors().size() - most));
    throw Error::all(shown);
  }

  void add_outputs() {
    if (source_.graph.outputs.empty()) throw Error(place_, "has no output");
    std::vector<NodeId> results;
    for (const ValueInfo& output : source_.graph.outputs) {
      const std::string where = fmt::format("{}: output '{}'", place_, printable(output.name));
      if (!available(output.name) || output.name.empty())
        throw Error(where, "nothing gives it", "the file is damaged");
      const Operand& operand = model_.values.at(output.name);
      if (operand.codes) throw Error(where, "is quantised integers: outputs are real numbers here");
      if (operand.node < 0) throw Error(where, "is a constant: it does not depend on the input");
      results.push_back(operand.node);
    }
    model_.graph.add_output(results);
  }

  void remove_unused() {
    Graph& graph = model_.graph;
    std::vector<int> uses(graph.id_limit(), 0);
    for (const NodeId id : graph.order())
      for (const NodeId input : graph.inputs_of(id)) ++uses[static_cast<size_t>(input)];
    std::vector<NodeId> order = graph.order();
    std::reverse(order.begin(), order.end());
    for (const NodeId id : order) {
      const NodeKind kind = graph.node(id).kind;
      if (kind == NodeKind::output || kind == NodeKind::placeholder) continue;
      if (uses[static_cast<size_t>(id)] > 0) continue;
      for (const NodeId input : graph.inputs_of(id)) --uses[static_cast<size_t>(input)];
      model_.roundings.erase(id);
      graph.erase(id);
    }
  }

  // A constant that nothing takes any more gives its memory back.
  void release(const std::vector<std::string>& names) {
    for (const std::string& name : names) {
      if (name.empty() || --remaining_[name] > 0) continue;
      const auto found = model_.values.find(name);
      if (found == model_.values.end() || !found->second.is_constant()) continue;
      budget_.give_back(found->second.constant->tensor.bytes());
      model_.values.erase(found);
    }
  }

  const Model& source_;
  ExternalFiles& files_;
  std::string place_;
  MemoryBudget& budget_;
  Conversion model_;
  std::map<std::string, const TensorData*> initializers_;
  std::map<std::string, int> remaining_;  // uses that are still to come
  std::set<std::string> failed_;
  Problems problems_;
};

}  // namespace

Imported import_model(const Model& model, ExternalFiles& files, const std::string& place,
                      MemoryBudget& budget) {
  const Model flat = inlined(model, place, budget);
  return Importer(flat, files, place, budget).run();
}

ExternalFiles files_beside(const std::string& path) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  return ExternalFiles(folder.empty() ? "." : folder.string());
}

Model read_file(const std::string& path, MemoryBudget& budget) {
  const std::shared_ptr<const MappedFile> file = MappedFile::open(path);
  budget.give_back(file->bytes().size());
  return read_model(file->bytes(), file, path, budget);
}

Imported import_file(const std::string& path, const ReadLimits& limits) {
  MemoryBudget budget(limits, 0);
  const Model model = read_file(path, budget);
  const std::filesystem::path file(path);
  ExternalFiles files = files_beside(path);
  Imported imported = import_model(model, files, path, budget);
  imported.graph.name = model.producer == own_producer && !model.graph.name.empty()
                            ? model.graph.name
                            : file.stem().string();
  return imported;
}

}  // namespace mase::onnx

namespace mase {

Checkpoint read_onnx(const std::string& path, const ReadLimits& limits, bool network_needed) {
  Checkpoint checkpoint;
  checkpoint.type = CheckpointType::onnx;
  if (network_needed) {
    onnx::Imported imported = onnx::import_file(path, limits);
    checkpoint.tensors = state_dict(imported.graph);
    checkpoint.graph = std::move(imported.graph);
    if (!imported.notes.empty()) checkpoint.contents = Dict{{"notes", Value::of(imported.notes)}};
    return checkpoint;
  }
  MemoryBudget budget(limits, 0);
  const onnx::Model model = onnx::read_file(path, budget);
  onnx::ExternalFiles files = onnx::files_beside(path);
  Dict facts = onnx::describe(model).as_dict();
  for (const onnx::TensorData& data : model.graph.initializers)
    checkpoint.tensors.emplace_back(data.name,
                                    onnx::read_constant(data, files, budget, path).tensor);
  try {
    onnx::Imported imported = onnx::import_file(path, limits);
    checkpoint.graph = std::move(imported.graph);
    if (!imported.notes.empty()) facts.set("notes", Value::of(imported.notes));
  } catch (const Error& error) {
    facts.set("cannot be run", Value::of(split(error.what(), '\n')));
  }
  checkpoint.contents = facts;
  return checkpoint;
}

}  // namespace mase
