// SPDX-License-Identifier: Apache-2.0
#include "mase/io/onnx/read/convert_graph.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "mase/base/text.h"
#include "mase/io/onnx/file/rename_values.h"
#include "mase/io/onnx/read/operator.h"
#include "mase/io/onnx/read/place_formats.h"
#include "mase/io/onnx/read/recognize_idioms.h"

namespace mase::onnx {
namespace {

constexpr size_t most_nodes = 20'000;
constexpr size_t deepest_body = 16;
constexpr int64_t oldest_operator_set = 7;
constexpr size_t most_inputs = size_t{1} << 14;  // of a node

bool has_parameter(const Module& module, const std::string& name) {
  const OpRecord& op = find_op(module.op);
  if (!op.params) return false;
  const std::vector<ParamSpec> specs = op.params(module.attributes);
  return std::any_of(specs.begin(), specs.end(),
                     [&](const ParamSpec& spec) { return spec.name == name; });
}

// Nodes so that each comes behind those whose results it takes, otherwise as they stand. The format
// asks for it, but tools append nodes, and onnxruntime sorts. What goes round in a circle, or takes
// what nothing gives, comes last and is told of there.
std::vector<const NodeData*> in_order(const std::vector<NodeData>& nodes) {
  std::map<std::string, size_t> makers;
  for (size_t i = 0; i < nodes.size(); ++i)
    for (const std::string& output : nodes[i].outputs) makers.emplace(output, i);
  std::vector<int> missing(nodes.size(), 0);
  std::vector<std::vector<size_t>> users(nodes.size());
  const auto wait_for = [&](size_t user, const std::string& name) {
    const auto maker = makers.find(name);
    if (maker == makers.end() || name.empty()) return;
    ++missing[user];
    users[maker->second].push_back(user);
  };
  const auto wait_for_all = [&](const auto& self, size_t user, const NodeData& node) -> void {
    for (const std::string& input : node.inputs) wait_for(user, input);
    for (const Attribute& attribute : node.attributes)
      if (attribute.graph)
        for (const NodeData& inner : attribute.graph->nodes) self(self, user, inner);
  };
  for (size_t i = 0; i < nodes.size(); ++i) wait_for_all(wait_for_all, i, nodes[i]);
  std::set<size_t> ready;
  for (size_t i = 0; i < nodes.size(); ++i)
    if (missing[i] == 0) ready.insert(i);
  std::vector<const NodeData*> order;
  std::vector<bool> placed(nodes.size(), false);
  while (!ready.empty()) {
    const size_t next = *ready.begin();
    ready.erase(ready.begin());
    order.push_back(&nodes[next]);
    placed[next] = true;
    for (const size_t user : users[next])
      if (--missing[user] == 0) ready.insert(user);
  }
  for (size_t i = 0; i < nodes.size(); ++i)
    if (!placed[i]) order.push_back(&nodes[i]);
  return order;
}

class GraphConverter {
 public:
  // `whole`: the model is one sample.
  GraphConverter(const Model& model, ExternalFiles& files, const std::string& place,
                 MemoryBudget& budget, bool whole, bool partial)
      : source_(model), files_(files), place_(place), budget_(budget), partial_(partial) {
    model_.place = place;
    model_.budget = &budget;
    model_.whole = whole;
    model_.standard_version = version_of("");
    model_.convert_body = [this](const GraphData& graph, const std::vector<Operand>& inputs) {
      return convert_body(graph, inputs);
    };
  }

  Converted run() {
    check();
    for (const TensorData& tensor : source_.graph.initializers)
      if (!initializers_.emplace(tensor.name, &tensor).second)
        throw Error(place_, fmt::format("two initialisers are named '{}'", printable(tensor.name)));
    check_names();
    count_uses(source_.graph);
    add_inputs();
    problems_.throw_if_any();
    if (needs_batch_) return {.needs_batch = needs_batch_};
    remaining_ = model_.uses;
    for (const NodeData* node : in_order(source_.graph.nodes)) {
      convert(*node);
      release(node->inputs);
    }
    report();
    if (needs_batch_) return {.needs_batch = needs_batch_};
    add_outputs();
    if (needs_batch_) return {.needs_batch = needs_batch_};
    remove_unused();
    if (!model_.graph.order().empty() && !partial_) recognize_idioms(model_.graph);
    place_formats(model_);
    remove_unread_constants();
    try {
      verify(model_.graph);
    } catch (const Error& error) {
      throw Error(place_, printable(error.what()));
    }
    return {.imported = Imported{.graph = std::move(model_.graph),
                                 .notes = std::move(model_.notes),
                                 .elements = std::move(output_elements_)}};
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

  // What an initialiser gives, no node gives too.
  void check_names() const {
    for (const NodeData& node : source_.graph.nodes)
      for (const std::string& output : node.outputs)
        if (!output.empty() && initializers_.count(output))
          throw Error(place_, fmt::format("an initialiser and a node give '{}'", printable(output)),
                      "the file is damaged");
  }

  void need_batch(const Error& why) {
    if (!needs_batch_) needs_batch_ = why;
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
    if (!input.shape)
      return refuse("has no shape",
                    "ch predict takes it from the given inputs; elsewhere say it with ch import "
                    "--input-shape 3,224,224 (without the batch)");
    if (input.shape->size() > most_dimensions)
      return refuse(
          fmt::format("has {} dimensions; the most is {}", input.shape->size(), most_dimensions));
    const bool whole = model_.whole;
    if (input.shape->empty() && !whole)
      return need_batch(Error(where, "is a scalar: it has no batch"));
    const auto dtype = dtype_of(input.element);
    if (!dtype) return refuse(fmt::format("holds {}", element_name(input.element)));
    if (!whole) {
      const Dimension& first = input.shape->front();
      const bool fixed = first.size && *first.size > 0;
      if (model_.graph.placeholders().empty())
        model_.fixed_batch = fixed ? *first.size : 0;
      else if (fixed && *first.size != model_.fixed_batch)
        return need_batch(
            Error(where, fmt::format("begins with {} where the first input has {}", *first.size,
                                     model_.fixed_batch == 0
                                         ? "a free batch"
                                         : fmt::format("a batch of {}", model_.fixed_batch))));
    }
    Shape sample;
    for (size_t i = whole ? 0 : 1; i < input.shape->size(); ++i) {
      const Dimension& dimension = (*input.shape)[i];
      if (!dimension.size || *dimension.size <= 0)
        return refuse(fmt::format("dimension {}{} has no fixed size", i,
                                  dimension.parameter.empty()
                                      ? ""
                                      : fmt::format(" ('{}')", printable(dimension.parameter))),
                      "ch predict takes it from the given inputs; elsewhere say it with ch import "
                      "--input-shape 3,224,224 (without the batch), or export with fixed sizes");
      sample.push_back(*dimension.size);
    }
    try {
      element_count(sample);
    } catch (const Error& error) {
      return refuse(error.what());
    }
    Operand operand{.shape = sample, .element = input.element};
    if (!whole) operand.shape.insert(operand.shape.begin(), Size::batch());
    operand.node = model_.graph.add_placeholder(input.name.empty() ? "x" : input.name, sample,
                                                is_real(*dtype)            ? DType::f32
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
      const OnnxOperator* found =
          Registry<OnnxOperator>::instance().find(operator_name(node.domain, node.op));
      if (!found)  // told whether or not its inputs are there
        context.fail(fmt::format("there is no such operator here (domain '{}', operator set {})",
                                 printable(node.domain.empty() ? "ai.onnx" : node.domain),
                                 context.version()),
                     "see docs/onnx_operators.md for those that are read");
      if (node.inputs.size() > most_inputs)
        context.fail(fmt::format("has {} inputs; the most is {}", node.inputs.size(), most_inputs));
      for (const std::string& input : node.inputs) {
        if (available(input)) continue;
        if (failed_.count(input)) {  // its own problem is told already
          for (const std::string& output : node.outputs) failed_.insert(output);
          return;
        }
        context.fail(fmt::format("uses '{}', which nothing before it gives", printable(input)),
                     "the file is damaged");
      }
      apply(*found, node, context);
    } catch (const Error& error) {
      if (partial_) return keep(node, context, error);
      if (dynamic_cast<const BatchNeeded*>(&error)) {
        need_batch(error.place().empty() ? Error(context.place(), error.cause(), error.remedy())
                                         : error);
      } else {
        ++unconverted_[operator_name(node.domain, node.op)];
        problems_.add(error.place().empty() ? Error(context.place(), error.cause(), error.remedy())
                                            : error);
      }
      for (const std::string& output : node.outputs)
        if (!model_.values.count(output)) failed_.insert(output);
    }
  }

  void apply(const OnnxOperator& op, const NodeData& node, NodeContext& context) {
    using Linear = OnnxOperator::Linear;
    const auto depends = [&](size_t index) {
      if (node.inputs[index].empty() || !model_.values.at(node.inputs[index]).sizes) return false;
      return op.linear == Linear::all || (op.linear == Linear::first && index == 0) ||
             (op.linear == Linear::but_first && index > 0);
    };
    for (size_t i = 0; i < node.inputs.size(); ++i)
      if (depends(i)) return apply_in_parts(op, node, context);
    apply_to_entries(op, node, context);
  }

  // What a node does with c * batch + d, it does with c and with d.
  void apply_in_parts(const OnnxOperator& op, const NodeData& node, const NodeContext& context) {
    using Linear = OnnxOperator::Linear;
    std::vector<std::vector<Operand>> parts;
    Element element = Element::i64;
    for (const bool batches : {true, false}) {
      NodeData part = node;
      if (part.name.empty() && !part.outputs.empty()) part.name = part.outputs.front();
      for (size_t i = 0; i < node.inputs.size(); ++i) {
        const bool moved = op.linear == Linear::all || (op.linear == Linear::first && i == 0) ||
                           (op.linear == Linear::but_first && i > 0);
        if (!moved || node.inputs[i].empty()) continue;
        Operand value = model_.values.at(node.inputs[i]);
        if (value.sizes) {
          element = value.element;
          std::vector<Size> own;
          for (const Size& size : *value.sizes)
            own.push_back(batches ? size.batches : size.constant);
          value = context.sizes_operand(value.shape, own, element);
        } else if (!value.is_constant() || value.repeated) {
          context.needs_batch("it computes with the size of the batch");
        } else if (batches) {
          value.constant->tensor =
              Tensor(value.constant->tensor.shape(), value.constant->tensor.dtype());
          value.format.reset();
          value.table.reset();
        }
        part.inputs[i] = "batch/" + node.inputs[i];
        model_.values.insert_or_assign(part.inputs[i], std::move(value));
      }
      for (std::string& output : part.outputs)
        if (!output.empty()) {
          output = "batch/" + output;
          ++model_.uses[output];
        }
      NodeContext own(model_, part, context.version());
      op.convert(own);
      std::vector<Operand>& results = parts.emplace_back();
      for (const std::string& output : part.outputs) {
        const auto found = model_.values.find(output);
        results.push_back(found == model_.values.end() ? Operand() : found->second);
        model_.values.erase(output);
      }
      for (const std::string& input : part.inputs)
        if (starts_with(input, "batch/")) model_.values.erase(input);
    }
    NodeContext own(model_, node, context.version());
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      const Operand &batches = parts[0][i], &rest = parts[1][i];
      if (node.outputs[i].empty() || !batches.is_constant() || !rest.is_constant()) continue;
      const Tensor a = batches.constant->tensor.to(DType::i64),
                   b = rest.constant->tensor.to(DType::i64);
      std::vector<Size> sizes;
      for (int64_t k = 0; k < a.numel(); ++k)
        sizes.push_back(Size::of(a.data<int64_t>()[k], b.data<int64_t>()[k]));
      own.result(i, own.sizes_operand(rest.shape, std::move(sizes), rest.element));
    }
  }

  // Constants that are repeated for the batch go into a node as one entry where that is the same.
  void apply_to_entries(const OnnxOperator& op, const NodeData& node, NodeContext& context) {
    using Repeated = OnnxOperator::Repeated;
    std::vector<size_t> repeated;
    size_t rank = 0;
    bool all_constant = true;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.inputs[i].empty()) continue;
      const Operand& input = model_.values.at(node.inputs[i]);
      if (input.repeated) repeated.push_back(i);
      rank = std::max(rank, input.rank());
      all_constant = all_constant && input.is_constant();
    }
    if (repeated.empty() || op.repeated == Repeated::own) return op.convert(context);
    const size_t axis = *model_.values.at(node.inputs[repeated[0]]).repeated;
    bool alike = op.repeated == Repeated::broadcasting;
    for (const std::string& name : node.inputs) {
      if (name.empty()) continue;
      const Operand& input = model_.values.at(name);
      if (input.repeated)
        alike = alike && *input.repeated == axis && input.rank() == rank;
      else if (!input.is_constant())
        alike = alike && input.rank() == rank && input.shape[axis].is_batch();
    }
    if (op.repeated == Repeated::indices) {  // Gather: rows of a constant
      alike = all_constant && repeated == std::vector<size_t>{1} && axis == 0 &&
              context.integer("axis", 0) == 0;
      rank = rank > 0 ? model_.values.at(node.inputs[1]).rank() +
                            model_.values.at(node.inputs[0]).rank() - 1
                      : 0;
    }
    if (alike) {
      op.convert(context);
      if (!all_constant) return;
      for (const std::string& output : node.outputs) {
        const auto found = model_.values.find(output);
        if (output.empty() || found == model_.values.end()) continue;
        Operand& result = found->second;
        if (result.is_constant() && result.rank() == rank && result.shape[axis] == 1)
          result.repeated = axis;
      }
      return;
    }
    NodeData own = node;
    for (const size_t index : repeated) {
      const Operand& input = model_.values.at(node.inputs[index]);
      if (*input.repeated != 0)
        context.needs_batch("the batch does not stand in front of a constant of its size");
      own.inputs[index] = "entries/" + node.inputs[index];
      if (!model_.values.count(own.inputs[index])) {
        Operand entries = context.with_batch(input);
        entries.element = input.element;
        model_.values.emplace(own.inputs[index], std::move(entries));
      }
    }
    NodeContext with_entries(model_, own, context.version());
    op.convert(with_entries);
  }

  // As an opaque node, with the shape that the file says its results have.
  void keep(const NodeData& node, NodeContext& context, const Error& error) {
    std::vector<Argument> inputs;
    for (const std::string& name : node.inputs) {
      const auto found = model_.values.find(name);
      if (found == model_.values.end()) continue;
      const Operand operand = context.as_numbers(found->second);
      if (operand.node >= 0) inputs.push_back(Argument::node(operand.node));
    }
    if (inputs.empty()) inputs.push_back(Argument::node(model_.graph.placeholders().at(0)));
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i].empty() || model_.values.count(node.outputs[i])) continue;
      Shape sample;
      for (const auto* list : {&source_.graph.values, &source_.graph.outputs})
        for (const ValueInfo& info : *list)
          if (info.name == node.outputs[i] && info.shape) {
            sample.clear();
            for (size_t d = model_.whole ? 0 : 1; d < info.shape->size(); ++d)
              sample.push_back(std::max<int64_t>(1, (*info.shape)[d].size.value_or(1)));
          }
      constexpr int64_t largest = int64_t{1} << 24;
      for (int64_t& size : sample) size = std::min(size, largest);
      Operand result{.shape = sample};
      if (!model_.whole) result.shape.insert(result.shape.begin(), Size::batch());
      result.node = model_.graph.call_function(
          "opaque", {Argument::list(inputs)},
          {{"operator", Argument::literal(operator_name(node.domain, node.op))},
           {"version", Argument::literal(context.version())},
           {"reason", Argument::literal(error.cause())},
           {"output", Argument::literal(static_cast<int64_t>(i))},
           {"shape", Argument::literal(Value::of(sample))}});
      model_.values.emplace(node.outputs[i], std::move(result));
    }
    model_.notes.push_back(fmt::format("kept, not run: {}", error.what()));
  }

  // The nodes of a branch or of one turn of a loop, with these inputs; what its outputs are. Names
  // inside are its own; those of around it are seen.
  std::vector<Operand> convert_body(const GraphData& graph, const std::vector<Operand>& inputs) {
    if (bodies_depth_ >= deepest_body || (body_nodes_ += graph.nodes.size()) > most_nodes)
      throw Error(place_, "its branches and loops make too many nodes");
    const std::string prefix = fmt::format("body{}/", ++bodies_);
    std::map<std::string, std::string> names;
    const auto own = [&](const std::string& name) {
      if (!name.empty()) names[name] = prefix + name;
    };
    for (size_t i = 0; i < graph.inputs.size(); ++i) {
      own(graph.inputs[i].name);
      if (i < inputs.size())
        model_.values.insert_or_assign(prefix + graph.inputs[i].name, inputs[i]);
    }
    for (const TensorData& tensor : graph.initializers) {
      own(tensor.name);
      initializers_.emplace(prefix + tensor.name, &tensor);
    }
    for (const NodeData& node : graph.nodes)
      for (const std::string& output : node.outputs) own(output);
    ++bodies_depth_;
    for (const NodeData& node : renamed(graph.nodes, names)) {
      for (const std::string& input : node.inputs) ++model_.uses[input];
      for (const std::string& output : node.outputs) ++model_.uses[output];
      convert(node);
    }
    --bodies_depth_;
    std::vector<Operand> outputs;
    for (const ValueInfo& output : graph.outputs) {
      const auto known = names.find(output.name);
      const std::string name = known == names.end() ? output.name : known->second;
      if (!available(name) || name.empty()) {
        if (failed_.count(name) && needs_batch_)
          throw BatchNeeded(needs_batch_->place(), needs_batch_->cause(), needs_batch_->remedy());
        if (failed_.count(name))
          throw Error(place_, "a node inside a branch or loop cannot be converted");
        throw Error(place_,
                    fmt::format("nothing gives '{}' inside a branch", printable(output.name)));
      }
      outputs.push_back(model_.values.at(name));
    }
    return outputs;
  }

  // Files of QONNX often import only the standard domain.
  int64_t version_of(const std::string& domain) const {
    if (const auto version = source_.operator_set(domain)) return *version;
    return 1;
  }

  void report() const {
    constexpr size_t most = 20;
    if (problems_.empty()) return;
    if (problems_.errors().size() <= most) return problems_.throw_if_any();
    std::vector<Error> shown(problems_.errors().begin(), problems_.errors().begin() + most);
    std::vector<std::string> all;
    for (const auto& [name, count] : unconverted_)
      if (all.size() < most) all.push_back(fmt::format("{} {}", count, printable(name)));
    if (unconverted_.size() > most) all.push_back("...");
    shown.emplace_back(place_, fmt::format("and {} more nodes that cannot be converted; in all: {}",
                                           problems_.errors().size() - most, join(all, ", ")));
    throw Error::all(shown);
  }

  void add_outputs() {
    if (source_.graph.outputs.empty()) throw Error(place_, "has no output");
    std::vector<NodeId> results;
    for (const ValueInfo& output : source_.graph.outputs) {
      const std::string where = fmt::format("{}: output '{}'", place_, printable(output.name));
      if (!available(output.name) || output.name.empty())
        throw Error(where, "nothing gives it", "the file is damaged");
      const NodeData node{.op = "output", .name = output.name};
      NodeContext context(model_, node, 0);
      Operand operand = context.as_numbers(model_.values.at(output.name));
      const Element element = operand.element;
      if (operand.sizes) {
        need_batch(Error(where, "is the size of the batch"));
        continue;
      }
      if (operand.is_constant() && !model_.whole && !operand.repeated) {
        need_batch(Error(where, "is a constant: it does not depend on the input"));
        continue;
      }
      if (operand.is_constant() && operand.repeated.value_or(0) == 0)
        operand = context.with_batch(operand);
      const bool kept =
          model_.whole || (operand.node >= 0 && operand.rank() > 0 && operand.shape[0].is_batch());
      if (!kept && !partial_) {
        need_batch(Error(where, fmt::format("has the shape {}: the batch does not stand in front",
                                            shape_text(operand.shape))));
        continue;
      }
      results.push_back(operand.node);
      output_elements_.push_back(element);
    }
    if (needs_batch_) return;
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

  // Constants whose nodes are gone.
  void remove_unread_constants() {
    Graph& graph = model_.graph;
    std::set<std::string> unread = model_.constants;
    for (const NodeId id : graph.order())
      if (graph.node(id).kind == NodeKind::get_attr) unread.erase(graph.node(id).target);
    for (const std::string& name : unread) {
      const auto owner = graph.owner_of(name);
      if (!owner) continue;
      Module& module = graph.modules().at(owner->first);
      // One that became a parameter of the layer around it stays.
      if (!module.op.empty() && has_parameter(module, owner->second)) continue;
      for (TensorTable* table : {&module.parameters, &module.buffers})
        std::erase_if(*table, [&](const auto& entry) { return entry.first == owner->second; });
      if (module.op.empty() && module.parameters.empty() && module.buffers.empty())
        graph.modules().erase(owner->first);
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
  std::map<std::string, int> unconverted_;  // by operator
  Problems problems_;
  std::optional<Error> needs_batch_;  // the first reason
  std::vector<Element> output_elements_;
  bool partial_;
  size_t bodies_ = 0, bodies_depth_ = 0, body_nodes_ = 0;  // of branches and loops
};

}  // namespace

Converted convert_graph(const Model& model, ExternalFiles& files, const std::string& place,
                        MemoryBudget& budget, bool whole, bool partial) {
  return GraphConverter(model, files, place, budget, whole, partial).run();
}

}  // namespace mase::onnx
