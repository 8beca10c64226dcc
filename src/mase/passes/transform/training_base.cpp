// SPDX-License-Identifier: Apache-2.0
// training_base: quantize for the forward and the backward pass of layers with weights, as MASE
// writes it.
//   backward: g' = q(g), x' = q(x), W' = q(W);  dx = g' W',  dW = g'^T x',  db = sum g'
// x and W are rounded from their float values, not from what the forward pass rounded them to.
#include <any>

#include "mase/passes/quantize_plan.h"

namespace mase::training_base_pass {
namespace {

// One direction's table without MASE's `pass` key; null if it asks for nothing.
Value direction(const Value& config, const char* key, const std::string& path, Problems& problems) {
  const Value& table = config[key];
  const std::string inner = path + "." + key;
  if (table.is_null()) return {};
  if (!table.is_dict()) {
    problems.add(
        Error(table.position(), inner, fmt::format("expected a table, got {}", table.type_name())));
    return {};
  }
  Value result = table;
  if (const Value& pass = table["pass"]; !pass.is_null()) {
    if (!pass.is_string() || pass.as_string() != "quantize")
      problems.add(Error(pass.position(), inner + ".pass", "only \"quantize\" is known here"));
    result.dict().erase("pass");
  }
  const Value& bypass = table["bypass"];
  return bypass.is_bool() && bypass.as_bool() ? Value() : result;
}

// {forward, backward} => the config of the quantize pass, with its table `backward`.
Value joined_config(const Value& config, const std::string& path, Problems& problems) {
  if (!config.is_dict()) return config;
  const Dict& given = config.as_dict();
  if (!given.contains("forward") && !given.contains("backward")) return config;
  for (const auto& [key, value] : given)
    if (key != "forward" && key != "backward")
      problems.add(Error(value.position(), path, fmt::format("unknown key '{}'", printable(key)),
                         "the config has a table forward and a table backward")
                       .as(Mistake::unknown_key));
  const Value forward = direction(config, "forward", path, problems);
  const Value backward = direction(config, "backward", path, problems);
  Value result = forward;
  if (forward.is_null()) {  // the layer computes in float, only its gradients do not
    result = Dict{{"name", backward.is_dict() ? backward["name"] : Value()}, {"bypass", true}};
    if (result["name"].is_null()) result = Dict{{"name", Value()}};
  }
  result.set_position(config.position());
  if (!backward.is_null()) result.dict().set("backward", backward);
  return result;
}

Value joined_args(const Value& args, const std::string& path, Problems& problems) {
  Value result = args;
  for (auto& [key, rule] : result.dict()) {
    if (key == "by" || !rule.is_dict() || !rule.as_dict().contains("config")) continue;
    rule.dict().set("config",
                    joined_config(rule["config"], path + "." + key + ".config", problems));
  }
  return result;
}

std::any plan(const Graph& graph, const Value& args, const std::string& path, Problems& problems) {
  return plan_quantize(graph, joined_args(args, path, problems), path, problems);
}

PassResult run(Graph& graph, const Value&, PassContext& context) {
  return apply_quantize_plan(graph, std::any_cast<const std::vector<PlannedNode>&>(context.plan),
                             context);
}

const Register<PassRecord> registered{{
    .name = "training_base",
    .aliases = {"training_base_transform_pass", "training_base_pass"},
    .pass_kind = PassKind::transform,
    .summary = "Number formats for the forward and the backward pass of layers with weights",
    .help = "As quantize, with two tables in each config:\n"
            "  [passes.training_base.linear.config.forward]\n"
            "  bypass = true\n"
            "  [passes.training_base.linear.config.backward]\n"
            "  pass = \"quantize\"\n"
            "  name = \"integer\"\n"
            "  output_grad_width = 8\n"
            "  output_grad_frac_width = 6\n"
            "  data_in_width = 8\n"
            "  data_in_frac_width = 4\n"
            "  weight_width = 8\n"
            "  weight_frac_width = 4\n"
            "Operands of the backward pass: output_grad, data_in, weight. Those without keys stay\n"
            "in float.",
    .schema = quantize_schema(),
    .plan = plan,
    .describe = describe_quantize_plan,
    .run = run,
    .tolerance = -1,
}};

}  // namespace
}  // namespace mase::training_base_pass
