// SPDX-License-Identifier: Apache-2.0
// lqer: what rounding took from a weight, given back by two thin products beside it (Zhang et al.,
// "LQER: low-rank quantization error reconstruction", 2024):
//   y = Q(W) x  =>  y = Q(W) x + B (A x),   B A the best of its rank for E = W - Q(W)
// Best is measured in the inputs: E M E' = U L U', B = the first columns of U, A = B' E, with M the
// second moments of the inputs (the least error of outputs there is), the squares of their mean
// magnitudes (the paper's), or nothing.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "mase/base/fields.h"
#include "mase/base/table.h"
#include "mase/ir/layer_text.h"
#include "mase/ir/op.h"
#include "mase/passes/lora.h"
#include "mase/passes/output.h"
#include "mase/passes/select.h"
#include "mase/passes/weight_method.h"

namespace mase::lqer_pass {
namespace {

// Eigenvectors of a symmetric matrix by Jacobi's rotations: rows of the result, by descending
// eigenvalue.
std::vector<std::vector<double>> eigenvectors(Matrix a, int64_t size) {
  const auto n = static_cast<size_t>(size);
  Matrix v(n * n, 0.0);
  for (size_t i = 0; i < n; ++i) v[i * n + i] = 1;
  for (int sweep = 0; sweep < 60; ++sweep) {
    double outside = 0, inside = 0;
    for (size_t i = 0; i < n; ++i)
      for (size_t j = 0; j < n; ++j) (i == j ? inside : outside) += a[i * n + j] * a[i * n + j];
    if (outside <= 1e-24 * inside) break;
    for (size_t p = 0; p < n; ++p)
      for (size_t q = p + 1; q < n; ++q) {
        const double apq = a[p * n + q];
        if (apq == 0) continue;
        const double theta = (a[q * n + q] - a[p * n + p]) / (2 * apq);
        const double t = (theta >= 0 ? 1.0 : -1.0) / (std::fabs(theta) + std::hypot(theta, 1.0));
        const double c = 1 / std::sqrt(t * t + 1), s = t * c;
        for (size_t k = 0; k < n; ++k) {
          const double kp = a[k * n + p], kq = a[k * n + q];
          a[k * n + p] = c * kp - s * kq;
          a[k * n + q] = s * kp + c * kq;
        }
        for (size_t k = 0; k < n; ++k) {
          const double pk = a[p * n + k], qk = a[q * n + k];
          a[p * n + k] = c * pk - s * qk;
          a[q * n + k] = s * pk + c * qk;
          const double vp = v[p * n + k], vq = v[q * n + k];
          v[p * n + k] = c * vp - s * vq;
          v[q * n + k] = s * vp + c * vq;
        }
      }
  }
  std::vector<size_t> order(n);
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t i, size_t j) { return a[i * n + i] > a[j * n + j]; });
  std::vector<std::vector<double>> result;
  for (const size_t i : order)
    result.emplace_back(v.begin() + static_cast<std::ptrdiff_t>(i * n),
                        v.begin() + static_cast<std::ptrdiff_t>((i + 1) * n));
  return result;
}

struct Thin {
  Tensor a, b;
};

Thin best_of_rank(const Tensor& weight, const Tensor& rounded, const ProductInputs& inputs,
                  int64_t rank, const std::string& measure) {
  const auto rows = static_cast<size_t>(weight.dim(0)), n = static_cast<size_t>(weight.dim(1));
  std::vector<double> e(rows * n), em(rows * n, 0.0);
  for (size_t i = 0; i < e.size(); ++i)
    e[i] = static_cast<double>(weight.data<float>()[i]) - rounded.data<float>()[i];
  for (size_t r = 0; r < rows; ++r)
    for (size_t k = 0; k < n; ++k) {
      if (measure == "moments") {
        const double* h = inputs.hessians[0].data() + k * n;
        for (size_t c = 0; c < n; ++c) em[r * n + c] += e[r * n + k] * h[c];
      } else {
        const double m = measure == "magnitudes" ? inputs.mean_magnitude[k] : 1.0;
        em[r * n + k] = e[r * n + k] * m * m;
      }
    }
  Matrix gram(rows * rows, 0.0);
  for (size_t i = 0; i < rows; ++i)
    for (size_t j = 0; j < rows; ++j)
      gram[i * rows + j] = std::inner_product(em.begin() + static_cast<std::ptrdiff_t>(i * n),
                                              em.begin() + static_cast<std::ptrdiff_t>((i + 1) * n),
                                              e.begin() + static_cast<std::ptrdiff_t>(j * n), 0.0);
  const std::vector<std::vector<double>> u = eigenvectors(std::move(gram), weight.dim(0));
  Thin thin{Tensor({rank, weight.dim(1)}), Tensor({weight.dim(0), rank})};
  for (int64_t k = 0; k < rank; ++k) {
    const std::vector<double>& column = u[static_cast<size_t>(k)];
    for (size_t r = 0; r < rows; ++r)
      thin.b.mutable_data<float>()[static_cast<int64_t>(r) * rank + k] =
          static_cast<float>(column[r]);
    for (size_t c = 0; c < n; ++c) {
      double sum = 0;
      for (size_t r = 0; r < rows; ++r) sum += column[r] * e[r * n + c];
      thin.a.mutable_data<float>()[k * weight.dim(1) + static_cast<int64_t>(c)] =
          static_cast<float>(sum);
    }
  }
  return thin;
}

// The weight that a rounded base and its thin products come to.
Tensor together(const Tensor& rounded, const Tensor& a, const Tensor& b) {
  Tensor sum = rounded;
  float* values = sum.mutable_data<float>();
  for (int64_t r = 0; r < b.dim(0); ++r)
    for (int64_t c = 0; c < a.dim(1); ++c) {
      double value = values[r * a.dim(1) + c];
      for (int64_t k = 0; k < a.dim(0); ++k)
        value += static_cast<double>(b.data<float>()[r * b.dim(1) + k]) *
                 a.data<float>()[k * a.dim(1) + c];
      values[r * a.dim(1) + c] = static_cast<float>(value);
    }
  return sum;
}

std::string obstacle(const Graph& graph, const Node& node, int64_t rank) {
  if (const std::string why = no_product_reason(graph, node); !why.empty()) return why;
  const Module& module = *graph.module_of(node);
  if (module.op != "linear") return "thin products stand beside linear layers only";
  if (!module.quantization.find("weight")) return "its weight has no number format";
  if (graph.modules().count(lora_a_path(node.target))) return "it has an adapter already";
  const Shape& weight = module.find("weight")->shape();
  if (rank >= std::min(weight[0], weight[1]))
    return fmt::format("rank {} is not below its {} x {}", rank, weight[0], weight[1]);
  return "";
}

PassResult run(Graph& graph, const Value& args, PassContext& context) {
  const int64_t rank = args["rank"].as_int();
  std::vector<NodeId> nodes = graph.order(), work;
  if (!args["target_nodes"].is_null()) {
    Problems problems;
    nodes =
        select_nodes(graph, select_by(args["by"]), args["target_nodes"], "target_nodes", problems);
    problems.throw_if_any();
  }
  Dict left, layers;
  for (const NodeId id : nodes) {
    const Node& node = graph.node(id);
    if (!graph.module_of(node) || !op_of(graph, node)->multiplies_weights() ||
        is_lora_part(node.target))
      continue;
    if (const std::string why = obstacle(graph, node, rank); why.empty())
      work.push_back(id);
    else
      left.set(node.name, why);
  }
  Dict data{{"layers", Dict{}}, {"left_alone", Value(left)}};
  if (work.empty()) {
    print(context, "lqer: no quantised linear layer to work on\n");
    return {std::move(data), false};
  }
  // The format of A and B, read once for all before anything is changed.
  Quantization thin_format;
  if (!args["format"].is_null()) {
    Problems problems;
    Value config = args["format"];
    config.dict().set("weight_only", true);
    thin_format = parse_quantization(config, operand_rules(*op_of(graph, graph.node(work.front()))),
                                     "format", problems);
    problems.throw_if_any();
  }
  const Quantizer* thin_quantizer = thin_format.find("weight");
  const CalibrationRows rows = calibration_rows(graph, args, context);
  Graph changed = graph;
  bool any = false;
  Table table({"Node", "Rank", "Bits per weight", "Before", "After", "Before (held out)",
               "After (held out)", ""});
  const auto text = [](double value) { return fmt::format("{:.3e}", value); };
  for (size_t at = 0; at < work.size(); ++at) {
    const NodeId id = work[at];
    const std::string path = graph.node(id).target;
    const ProductInputs seen = std::move(product_inputs(changed, {id}, rows.seen).at(id)),
                        heldout = std::move(product_inputs(changed, {id}, rows.heldout).at(id));
    const Module& module = changed.modules().at(path);
    const Tensor weight = *module.find("weight");
    const Quantizer& quantizer = *module.quantization.find("weight");
    const Tensor rounded = quantize(quantizer, weight), zero(weight.shape());
    const Thin thin = best_of_rank(weight, rounded, seen, rank, args["measure"].as_string());
    const auto as_used = [&](const Tensor& tensor) {
      return thin_quantizer ? quantize(*thin_quantizer, tensor) : tensor;
    };
    const Tensor result = together(rounded, as_used(thin.a), as_used(thin.b));
    const auto share = [&](const Tensor& other, const ProductInputs& inputs) {
      const double power = output_error(weight, zero, inputs);
      return power > 0 ? output_error(weight, other, inputs) / power : 0.0;
    };
    const double before = share(rounded, seen), held = share(rounded, heldout);
    double after = share(result, seen), held_after = share(result, heldout);
    const auto bits_of = [&](const Quantizer* of, const Tensor& tensor) {
      return (of ? of->bits_per_value(tensor.shape()) : 32.0) * static_cast<double>(tensor.numel());
    };
    const double alone_bits = bits_of(&quantizer, weight),
                 bits = (alone_bits + bits_of(thin_quantizer, thin.a) +
                         bits_of(thin_quantizer, thin.b)) /
                        static_cast<double>(weight.numel());
    const bool kept = held_after <= held;
    std::string what;
    if (kept) {
      LoraOptions options;
      options.rank = rank;
      options.seed = context.seed;
      insert_lora(changed, path, options);
      for (const auto& [part, tensor] :
           {std::pair{lora_a_path(path), &thin.a}, {lora_b_path(path), &thin.b}}) {
        Module& own = changed.modules().at(part);
        *own.find("weight") = *tensor;
        own.quantization = thin_format;
      }
      any = true;
    } else {
      what = fmt::format("left alone: {} on held-out rows", text(held_after));
      after = before;
      held_after = held;
    }
    const double now = kept ? bits : alone_bits / static_cast<double>(weight.numel());
    const std::string& name = graph.node(id).name;
    table.add({name, std::to_string(kept ? rank : 0), fmt::format("{:.2f}", now), text(before),
               text(after), text(held), text(held_after), what});
    layers.set(name, Dict{{"before", before},
                          {"after", after},
                          {"heldout_before", held},
                          {"heldout_after", held_after},
                          {"bits_per_weight", now},
                          {"kept", kept},
                          {"note", what}});
    if (context.progress)
      context.progress(static_cast<double>(at + 1) / static_cast<double>(work.size()));
  }
  graph = std::move(changed);
  print(context, fmt::format("lqer: errors of outputs relative to their power, on {} rows seen and "
                             "{} held out\n{}\n",
                             rows.seen.at(0).dim(0), rows.heldout.at(0).dim(0), table.str()));
  data.set("calibration", rows.record());
  data.set("layers", std::move(layers));
  return {std::move(data), any};
}

const Register<PassRecord> registered{{
    .name = "lqer",
    .aliases = {"lqer_transform_pass"},
    .pass_kind = PassKind::transform,
    .summary = "Low-rank products that give back what rounding took (LQER)",
    .help = "Runs behind quantize. Two thin linear layers beside each, named as adapters are "
            "(LAYER.lora_A, LAYER.lora_B), so that training can go on with them.",
    .schema = weight_method_schema(
        {integer_field("rank", "rows of A and columns of B", 8).between(1, 65536),
         text_field("measure",
                    "what an error weighs: moments of the inputs, their magnitudes, or nothing",
                    "moments", {"moments", "magnitudes", "none"}),
         table_field("format", "number format of A and B: {name = \"NA\"} for none",
                     Dict{{"name", "mxint"}, {"weight_width", 8}})}),
    .run = run,
    .tolerance = -1,
}};

}  // namespace
}  // namespace mase::lqer_pass
