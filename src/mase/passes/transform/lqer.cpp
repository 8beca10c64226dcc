// SPDX-License-Identifier: Apache-2.0
// lqer: what rounding took from a weight, given back by two thin products beside it (Zhang et al.,
// "LQER: low-rank quantization error reconstruction", 2024):
//   y = Q(W) x  =>  y = Q(W) x + B (A x),   B A the best of its rank for E = W - Q(W)
// Best is measured in the inputs: E M E' = U L U', B = the first columns of U, A = B' E, with M the
// second moments of the inputs (the least error of outputs there is), the squares of their mean
// magnitudes (the paper's), or nothing. Q may round by gptq; with more rounds it rounds what the
// products leave, W - B A, and they are found anew (Li et al., "LoftQ", 2023).
#include <algorithm>
#include <cmath>

#include "mase/base/fields.h"
#include "mase/engine/kernels/double_products.h"
#include "mase/ir/op.h"
#include "mase/passes/gptq_choice.h"
#include "mase/passes/lora.h"
#include "mase/passes/weight_method.h"

namespace mase::lqer_pass {
namespace {

struct Options {
  int64_t rank = 8, rounds = 1;
  std::string measure;
  bool gptq = false;
  GptqOptions solver;
  Quantization format;  // of the thin products
};

// The best products of this rank for what `rounded` leaves of `weight`.
ThinProducts best_of_rank(const WeightProblem& problem, const Tensor& rounded,
                          const Options& options) {
  const Tensor& weight = problem.weight;
  const int64_t rows = weight.dim(0), n = weight.dim(1), rank = options.rank;
  const auto size = static_cast<size_t>(rows * n);
  std::vector<double> e(size), em(size);
  for (size_t i = 0; i < size; ++i)
    e[i] = static_cast<double>(weight.data<float>()[i]) - rounded.data<float>()[i];
  if (options.measure == "moments") {
    kernels::multiply_doubles({.rows = rows,
                               .columns = n,
                               .inner = n,
                               .a = {.doubles = e.data(), .row = n},
                               .b = {.doubles = problem.inputs.hessians[0].data(), .row = n},
                               .out = em.data(),
                               .out_row = n},
                              problem.threads);
  } else {
    for (size_t i = 0; i < size; ++i) {
      const double m = options.measure == "magnitudes"
                           ? problem.inputs.mean_magnitude[i % static_cast<size_t>(n)]
                           : 1.0;
      em[i] = e[i] * m * m;
    }
  }
  Matrix gram(static_cast<size_t>(rows * rows));
  kernels::multiply_doubles({.rows = rows,
                             .columns = rows,
                             .inner = n,
                             .a = {.doubles = em.data(), .row = n},
                             .b = {.doubles = e.data(), .row = 1, .column = n},
                             .out = gram.data(),
                             .out_row = rows},
                            problem.threads);
  const Eigenvectors u = largest_eigenvectors(gram, rows, rank, problem.threads);
  std::vector<double> a(static_cast<size_t>(rank * n));
  kernels::multiply_doubles({.rows = rank,
                             .columns = n,
                             .inner = rows,
                             .a = {.doubles = u.vectors.data(), .row = rows},
                             .b = {.doubles = e.data(), .row = n},
                             .out = a.data(),
                             .out_row = n},
                            problem.threads);
  ThinProducts thin{Tensor({rank, n}), Tensor({rows, rank}), options.format};
  std::copy(a.begin(), a.end(), thin.a.mutable_data<float>());
  float* b = thin.b.mutable_data<float>();
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t k = 0; k < rank; ++k)
      b[r * rank + k] = static_cast<float>(u.vectors[static_cast<size_t>(k * rows + r)]);
  return thin;
}

WeightChoice round(const WeightProblem& problem, const Options& options) {
  if (options.gptq) return gptq_choice(problem, options.solver);
  const Tensor source = clipped_source(problem);
  return {rounded_to(FrozenGrid(problem.quantizer, source), problem.weight, problem.threads),
          source, ""};
}

WeightChoice choose(const WeightProblem& problem, const Options& options) {
  WeightChoice choice = round(problem, options);
  for (int64_t at = 0; choice.why.empty(); ++at) {
    choice.beside = best_of_rank(problem, choice.weight, options);
    if (at + 1 >= options.rounds) break;
    const Tensor rest = with_thin_products(problem.weight, *choice.beside, -1);
    const WeightProblem left{problem.quantizer, rest,         problem.rows,    problem.columns,
                             problem.inputs,    problem.seed, problem.threads, problem.clips};
    choice = round(left, options);
  }
  // Rounded where they are used, so that training has numbers to go on with.
  if (!options.gptq && options.rounds == 1) choice.stays = true;
  return choice;
}

std::string obstacle(const Graph& graph, const Node& node, int64_t rank) {
  const Module& module = *graph.module_of(node);
  if (module.op != "linear") return "thin products stand beside linear layers only";
  if (graph.modules().count(lora_a_path(node.target))) return "it has an adapter already";
  const Shape& weight = module.find("weight")->shape();
  if (rank >= std::min(weight[0], weight[1]))
    return fmt::format("rank {} is not below its {} x {}", rank, weight[0], weight[1]);
  return "";
}

// The format of A and B, read once for all before anything is changed.
Quantization thin_format(const Value& format) {
  Problems problems;
  Value config = format;
  config.dict().set("weight_only", true);
  Quantization result = parse_quantization(
      config, operand_rules(Registry<OpRecord>::instance().get("linear")), "format", problems);
  problems.throw_if_any();
  return result;
}

PassResult run(Graph& graph, const Value& args, PassContext& context) {
  Options options;
  options.rank = args["rank"].as_int();
  options.rounds = args["rounds"].as_int();
  options.measure = args["measure"].as_string();
  options.gptq = args["rounding"].as_string() == "gptq";
  options.solver = gptq_options(args);
  if (!args["format"].is_null()) options.format = thin_format(args["format"]);
  return improve_weights(
      graph, args, context,
      {.name = "lqer",
       .choose = [options](const WeightProblem& problem) { return choose(problem, options); },
       .obstacle = [rank = options.rank](const Graph& of,
                                         const Node& node) { return obstacle(of, node, rank); },
       .clips = clips_of(args["clip"])});
}

Schema schema() {
  std::vector<Field> fields = {
      integer_field("rank", "rows of A and columns of B", 8).between(1, 65536),
      text_field("measure",
                 "what an error weighs: moments of the inputs, their magnitudes, or nothing",
                 "moments", {"moments", "magnitudes", "none"}),
      table_field("format", "number format of A and B: {name = \"NA\"} for none",
                  Dict{{"name", "mxint"}, {"weight_width", 8}}),
      text_field("rounding", "how the weight is rounded: each value to the nearest, or by gptq",
                 "nearest", {"nearest", "gptq"}),
      integer_field("rounds", "how often weight and thin products are found in turn", 1)
          .between(1, 100),
      clips_field("clip", "shares of a group's range that its scale may serve", List{1.0})};
  for (Field& field : gptq_fields()) fields.push_back(std::move(field));
  return weight_method_schema(std::move(fields));
}

const Register<PassRecord> registered{{
    .name = "lqer",
    .aliases = {"lqer_transform_pass"},
    .pass_kind = PassKind::transform,
    .summary = "Low-rank products that give back what rounding took (LQER)",
    .help = "Runs behind quantize, in the place of gptq (rounding = \"gptq\"), not behind it: what "
            "a weight was before rounding must be known. Two thin linear layers beside each, named "
            "as adapters are (LAYER.lora_A, LAYER.lora_B), so that training can go on with them.",
    .schema = schema(),
    .run = run,
    .tolerance = -1,
}};

}  // namespace
}  // namespace mase::lqer_pass
