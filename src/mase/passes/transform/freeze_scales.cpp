// SPDX-License-Identifier: Apache-2.0
// freeze_scales: learned steps and clips become numbers that are given.
//   weight_scale = "learned", found 0.0731  ->  weight_step = 0.0731
// What reads a network then needs to know nothing of training: hardware, other programs, GPTQ.
// Steps of few significant bits keep sums of products short, and single precision exact.
#include <algorithm>
#include <cmath>

#include "mase/formats/number_type.h"
#include "mase/ir/layer_text.h"
#include "mase/ir/learned.h"
#include "mase/passes/pass.h"

namespace mase::freeze_scales_pass {
namespace {

double rounded_to(double step, int64_t bits) {
  int exponent = 0;
  const double fraction = std::frexp(step, &exponent);
  const int digits = static_cast<int>(bits);
  return std::ldexp(std::nearbyint(std::ldexp(fraction, digits)), exponent - digits);
}

// The steps of one operand as they were found.
Scaled found_type(const Module& module, const std::string& path, const LearnedOperand& operand) {
  const Tensor* number = module.find(operand.parameter);
  if (!number || number->numel() == 0 || number->item(0) == 0)
    throw Error(fmt::format("freeze_scales: {}: {}", path, operand.operand),
                fmt::format("its {} is learned, and no training has found it yet",
                            operand.quantizer->learned->name),
                "train the network first");
  const Tensor* tensor = module.find(operand.operand);
  const Tensor values = number->to(DType::f32);
  const NumberType type =
      operand.quantizer->learned->type(values.data<float>(), tensor ? tensor->shape() : Shape{1});
  const Scaled* scaled = type.as<Scaled>();
  MASE_CHECK(scaled, "{} learned something else than a scale", operand.operand);
  return *scaled;
}

bool has_scale(const LearnedOperand& operand) {
  return operand.quantizer->type && operand.quantizer->type->as<Scaled>() &&
         operand.quantizer->learned->type;
}

// The step of so many bits, a power of two, that holds all of these.
double covering_step(const Tensor& tensor, int64_t width) {
  double largest = 0;
  for (const float value : tensor.to(DType::f32).values<float>())
    if (std::isfinite(value)) largest = std::max(largest, std::abs(static_cast<double>(value)));
  const double codes = std::ldexp(1.0, static_cast<int>(width) - 1) - 1;
  return largest > 0 ? std::exp2(std::ceil(std::log2(largest / codes))) : 1.0;
}

PassResult run(Graph& graph, const Value& args, PassContext&) {
  Dict frozen;
  Graph changed = graph;
  for (const std::string& path : changed.module_order()) {
    Module& module = changed.modules().at(path);
    Value config = module.quantization.config;
    bool any = false;
    for (const LearnedOperand& operand : learned_operands(module)) {
      if (!has_scale(operand)) continue;  // learned widths are no scales
      const Scaled type = found_type(module, path, operand);
      List steps;
      for (const double step : type.steps)
        steps.push_back(args["bits"].is_null() ? step : rounded_to(step, args["bits"].as_int()));
      using Kind = Granularity::Kind;
      const Kind kind = operand.quantizer->type->granularity.kind;
      const std::string prefix = operand.operand + "_";
      for (const char* key : {"scale", "clip"}) config.dict().set(prefix + key, "data");
      config.dict().set(prefix + "granularity", kind == Kind::row    ? "row"
                                                : kind == Kind::axis ? "channel"
                                                                     : "tensor");
      config.dict().set(prefix + "narrow", type.narrow);
      config.dict().set(prefix + "step", steps.size() == 1 ? steps[0] : Value(steps));
      frozen.set(path + "." + operand.operand,
                 steps.size() == 1 ? steps[0] : Value(static_cast<int64_t>(steps.size())));
      any = true;
    }
    if (!any) continue;
    const Tensor* const bias = module.find("bias");
    if (bias && !args["bias_width"].is_null() && !module.quantization.find("bias")) {
      const int64_t width = args["bias_width"].as_int();
      config.dict().set("bias_width", width);
      config.dict().set("bias_step", covering_step(*bias, width));
    }
    Problems problems;
    module.quantization =
        parse_quantization(config, operand_rules(find_op(module.op)), path, problems);
    problems.throw_if_any();
    fit_learned_parameters(module);
  }
  const bool any = !frozen.empty();
  if (any) graph = std::move(changed);
  return {Dict{{"frozen", std::move(frozen)}}, any};
}

const Register<PassRecord> registered{{
    .name = "freeze_scales",
    .aliases = {"freeze_scales_transform_pass"},
    .pass_kind = PassKind::transform,
    .summary = "Learned steps and clips become numbers that are given",
    .help = "Steps that training found (scale = \"learned\", clip = \"learned\") are written into "
            "the layers' tables as `step`, one for each group, and are no longer parameters. With "
            "`bits` they are rounded to so many significant bits. `ch emit` runs it by itself.",
    .schema = {{{.name = "bits",
                 .type = FieldType::integer,
                 .help = "significant bits of a step; as it was found if not given",
                 .minimum = 1,
                 .maximum = 24},
                {.name = "bias_width",
                 .type = FieldType::integer,
                 .help = "biases of such layers that have no format are rounded to so many bits, "
                         "with a power of two as step; they stay as they are if not given",
                 .minimum = 2,
                 .maximum = 32}}},
    .run = run,
    .tolerance = -1,
}};

}  // namespace
}  // namespace mase::freeze_scales_pass
