// SPDX-License-Identifier: Apache-2.0
// Graphs: what they hold, as plain dicts and arrays; running, copying, drawing and costs.
#include "mase/ir/graph.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "convert.h"
#include "mase/engine/program.h"
#include "mase/io/networks/checkpoint.h"
#include "mase/ir/layer_text.h"
#include "mase/passes/compare.h"
#include "mase/passes/costs.h"
#include "mase/passes/drawing.h"
#include "mase/run/describe.h"
#include "module.h"

namespace mase::python {
namespace {

const Node& node_named(const Graph& graph, const std::string& name) {
  const Node* node = graph.find(name);
  if (!node) {
    std::vector<std::string> names;
    for (const NodeId id : graph.order()) names.push_back(graph.node(id).name);
    throw Error(name, "the graph has no such node", suggestion(name, names));
  }
  return *node;
}

Module& module_at(Graph& graph, const std::string& path) {
  const auto found = graph.modules().find(path);
  if (found == graph.modules().end()) {
    std::vector<std::string> paths;
    for (const auto& [known, module] : graph.modules()) paths.push_back(known);
    throw Error(path, "the graph has no such layer", suggestion(path, paths));
  }
  return found->second;
}

// What reports say about a node, in one dict.
Value node_value(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  List inputs, users;
  for (const NodeId input : graph.inputs_of(id)) inputs.push_back(graph.node(input).name);
  for (const NodeId user : graph.users(id)) users.push_back(graph.node(user).name);
  const OpRecord* op = op_of(graph, node);
  return Dict{{"name", node.name},
              {"op", node_kind_name(node.kind)},
              {"target", node.target},
              {"mase_type", mase_type(graph, node)},
              {"mase_op", mase_op(graph, node)},
              {"class_name", class_text(graph, node)},
              {"text", layer_text(graph, node)},
              {"format", op ? format_text(graph.quantization_of(node)) : ""},
              {"inputs", inputs},
              {"users", users}};
}

Value module_value(const Module& module) {
  List parameters, buffers, masks;
  for (const auto& [name, tensor] : module.parameters) parameters.push_back(name);
  for (const auto& [name, tensor] : module.buffers) buffers.push_back(name);
  for (const auto& [name, tensor] : module.masks) masks.push_back(name);
  return Dict{{"op", module.op},
              {"attributes", module.attributes},
              {"text", module.op.empty() ? "tensors" : module_text(module)},
              {"config", module.quantization.config},
              {"frozen", module.frozen},
              {"parameters", parameters},
              {"buffers", buffers},
              {"masks", masks}};
}

Tensor& tensor_of(Module& module, const std::string& path, const std::string& name) {
  if (Tensor* tensor = module.find(name)) return *tensor;
  for (auto& [key, mask] : module.masks)
    if ("mask:" + key == name) return mask;
  throw Error(path, fmt::format("has no tensor '{}'", printable(name)));
}

void set_tensor(Graph& graph, const std::string& path, const std::string& name, nb::handle object) {
  Module& module = module_at(graph, path);
  Tensor& old = tensor_of(module, path, name);
  const Tensor given = to_tensor(object, path + "." + name);
  if (given.shape() != old.shape() || given.dtype() != old.dtype())
    throw Error(path + "." + name, fmt::format("expected {} {}, got {} {}", dtype_name(old.dtype()),
                                               shape_text(old.shape()), dtype_name(given.dtype()),
                                               shape_text(given.shape())));
  old = given;
}

// A tensor by its name in the state dict; a mask has "mask:" in front.
void set_state(Graph& graph, std::string name, nb::handle object) {
  const bool mask = starts_with(name, "mask:");
  if (mask) name = name.substr(5);
  if (!name.empty() && name[0] == '.')
    name.erase(0, 1);  // of the network itself, which has no path
  const auto owner = graph.owner_of(name);
  if (!owner) throw Error(name, "the graph has no such tensor");
  set_tensor(graph, owner->first, (mask ? "mask:" : "") + owner->second, object);
}

// The description is that of .mz files. The tensors' memory is shared.
Graph described_graph(nb::handle description, const nb::dict& tensors) {
  Graph graph = graph_from_value(to_value(description, "graph"));
  for (const auto& [key, object] : tensors) set_state(graph, nb::cast<std::string>(key), object);
  return graph;
}

nb::list run_graph(const Graph& graph, const nb::list& objects, int threads) {
  std::vector<Tensor> inputs = to_tensors(objects, "inputs");
  const std::vector<NodeId> places = graph.placeholders();
  if (inputs.size() != places.size())
    throw Error("inputs",
                fmt::format("the graph takes {} arrays, got {}", places.size(), inputs.size()));
  for (size_t i = 0; i < inputs.size(); ++i) {
    Shape wanted = graph.node(places[i]).sample_shape;
    const Shape& shape = inputs[i].shape();
    if (shape.empty() || Shape(shape.begin() + 1, shape.end()) != wanted)
      throw Error(graph.node(places[i]).name,
                  fmt::format("expected [rows, {}, got {}", shape_text(wanted).substr(1),
                              shape_text(shape)));
    if (inputs[i].dtype() != DType::f32) inputs[i] = inputs[i].to(DType::f32);
  }
  std::vector<Tensor> outputs;
  {
    nb::gil_scoped_release unlocked;
    outputs = run(graph, inputs, threads);
  }
  nb::list result;
  for (Tensor& output : outputs) result.append(owned_array(std::move(output)));
  return result;
}

nb::dict used_parameters(Graph& graph, const std::string& path) {
  const Module& module = module_at(graph, path);
  nb::dict result;
  for (const auto& [name, tensor] : module.parameters)
    result[name.c_str()] = owned_array(used_parameter(module, name));
  return result;
}

}  // namespace

void bind_graph(nb::module_& module) {
  nb::class_<Graph>(module, "Graph", "An ordered list of nodes and a table of layers.")
      .def_rw("name", &Graph::name)
      .def("text", &Graph::text)
      .def("copy", [](const Graph& graph) { return Graph(graph); })
      .def("nodes",
           [](const Graph& graph) {
             List nodes;
             for (const NodeId id : graph.order()) nodes.push_back(node_value(graph, id));
             return from_value(nodes);
           })
      .def("node_count", [](const Graph& graph) { return graph.order().size(); })
      .def("metadata",
           [](const Graph& graph, const std::string& name) {
             return from_value(name.empty() ? Value(graph.meta) : node_named(graph, name).meta);
           })
      .def("module_paths",
           [](const Graph& graph) {
             nb::list paths;
             for (const auto& [path, layer] : graph.modules()) paths.append(path);
             return paths;
           })
      .def("module",
           [](Graph& graph, const std::string& path) {
             return from_value(module_value(module_at(graph, path)));
           })
      .def("tensor",
           [](Graph& graph, const std::string& path, const std::string& name) {
             return shared_array(tensor_of(module_at(graph, path), path, name));
           })
      .def("set_tensor", &set_tensor)
      .def("set_state", &set_state)
      .def("used_parameters", &used_parameters)
      .def("state_dict", [](const Graph& graph) { return table_arrays(state_dict(graph)); })
      .def("description", [](const Graph& graph) { return from_value(graph_to_value(graph)); })
      .def("verify", [](const Graph& graph) { verify(graph); })
      .def("parameter_count", &Graph::parameter_count, nb::arg("trainable_only") = true)
      .def("input_shapes",
           [](const Graph& graph) {
             nb::dict shapes;
             for (const NodeId id : graph.placeholders())
               shapes[graph.node(id).name.c_str()] = nb::cast(graph.node(id).sample_shape);
             return shapes;
           })
      .def("run", &run_graph, nb::arg("inputs"), nb::arg("threads") = 1)
      .def("summary",
           [](const Graph& graph, int64_t batch) {
             const Value record = summary_record(graph, batch);
             return nb::make_tuple(summary_text(record, graph), from_value(record));
           })
      .def("cost", [](const Graph& graph,
                      int64_t batch) { return from_value(network_cost(graph, batch).to_value()); })
      .def("dot", [](const Graph& graph) { return graph_dot(graph); })
      .def("svg", [](const Graph& graph) { return graph_svg(graph); })
      .def(
          "save",
          [](const Graph& graph, const std::string& path, nb::handle extra) {
            const Value contents = to_value(extra, "extra");
            nb::gil_scoped_release unlocked;
            save_mz(path, graph, contents);
          },
          nb::arg("path"), nb::arg("extra").none());
  module.def("described_graph", &described_graph, nb::arg("description"), nb::arg("tensors"));
}

}  // namespace mase::python
