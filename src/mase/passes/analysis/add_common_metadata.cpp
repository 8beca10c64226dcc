// SPDX-License-Identifier: Apache-2.0
// add_common_metadata: MASE's type and op of every node, and type, precision, shape and dtype of
// every argument, parameter and result. Shapes are inferred, and values (on request) come from
// evaluation mode, so that batch-norm statistics stay what they were.
#include "mase/base/fields.h"
#include "mase/base/tensor_text.h"
#include "mase/ir/layer_text.h"
#include "mase/ir/typed_graph.h"
#include "mase/passes/metadata.h"

namespace mase::add_common_metadata_pass {
namespace {

Dict tensor_entry(const Shape& shape) {
  return Dict{{"shape", Value::of(shape)},
              {"torch_dtype", Symbol{"torch.float32"}},
              {"type", "float"},
              {"precision", List{Value(32)}}};
}

Dict parameter_entry(const Tensor& tensor) {
  return Dict{{"type", "float"},
              {"precision", List{Value(32)}},
              {"shape", Value::of(tensor.shape())},
              {"from", nullptr}};
}

using Texts = std::map<NodeId, std::string>;

Texts values_of(const Graph& graph, PassContext& context, int64_t batch) {
  Texts texts;
  std::vector<Array> inputs;
  for (const Tensor& tensor : sample_inputs(graph, context, batch))
    inputs.push_back(Array::from(tensor));
  EvaluateOptions options;
  options.observe = [&](const Node& node, const Array& result) {
    texts[node.id] = tensor_text(result.to_tensor());
  };
  evaluate(graph, inputs, options);
  return texts;
}

Value arguments_of(const BoundGraph& bound, const Node& node, const std::vector<Shape>& shapes,
                   const Texts& texts, bool add_value) {
  Dict args;
  if (!op_of(bound.graph(), node)) return args;
  const BoundCall& call = bound.own_call(node.id);
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    Dict entry = tensor_entry(shapes[static_cast<size_t>(call.inputs[i])]);
    const auto text = texts.find(call.inputs[i]);
    if (add_value && text != texts.end()) entry.set("value", Symbol{text->second});
    args.set(input_name(i), std::move(entry));
  }
  if (call.module) {
    for (const auto& [name, tensor] : call.module->parameters) {
      Dict entry = parameter_entry(tensor);
      if (add_value) entry.set("value", Symbol{tensor_text(tensor)});
      args.set(name, std::move(entry));
    }
  } else {
    for (const auto& [name, value] : call.attributes.as_dict()) args.set(name, value);
  }
  return args;
}

PassResult run(Graph& graph, const Value& args, PassContext& context) {
  const int64_t batch =
      args["batch_size"].is_null() ? report_batch(context) : args["batch_size"].as_int();
  const bool add_value = args["add_value"].as_bool();
  const BoundGraph bound(graph);
  const std::vector<Shape> shapes = bound.shapes(batch);
  const Texts texts = add_value ? values_of(graph, context, batch) : Texts();
  List nodes_in, nodes_out;
  for (const NodeId id : graph.order()) {
    Node& node = graph.node(id);
    Dict result = tensor_entry(shapes[static_cast<size_t>(id)]);
    const NodeId source = node.kind == NodeKind::output ? graph.outputs().front() : id;
    const auto text = texts.find(source);  // a call with several results has no value of its own
    if (add_value && text != texts.end()) result.set("value", Symbol{text->second});
    node.meta.set("common", Dict{{"mase_type", mase_type(graph, node)},
                                 {"mase_op", mase_op(graph, node)},
                                 {"args", arguments_of(bound, node, shapes, texts, add_value)},
                                 {"results", Dict{{"data_out_0", std::move(result)}}}});
    update_operand_metadata(graph, node);
    if (node.kind == NodeKind::placeholder) nodes_in.push_back(node.name);
  }
  for (const NodeId id : graph.outputs()) nodes_out.push_back(graph.node(id).name);
  Dict inputs, results;
  for (size_t i = 0; i < nodes_in.size(); ++i)
    inputs.set(input_name(i),
               graph.find(nodes_in[i].as_string())->meta.at("common")["results"]["data_out_0"]);
  for (size_t i = 0; i < nodes_out.size(); ++i)
    results.set(fmt::format("data_out_{}", i),
                graph.find(nodes_out[i].as_string())->meta.at("common")["results"]["data_out_0"]);
  graph.meta.set("common", Dict{{"nodes_in", nodes_in},
                                {"nodes_out", nodes_out},
                                {"args", inputs},
                                {"results", results}});
  return {Dict(), false};
}

const Register<PassRecord> registered{{
    .name = "add_common_metadata",
    .aliases = {"add_common_metadata_analysis_pass"},
    .summary = "Types, precisions, shapes and dtypes of every argument and result",
    .schema = {{
        integer_field("batch_size", "batch size of the shapes; the caller's if not given").from(1),
        boolean_field("add_value", "store the values of one batch too", false),
    }},
    .run = run,
}};

}  // namespace
}  // namespace mase::add_common_metadata_pass
