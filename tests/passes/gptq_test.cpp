// SPDX-License-Identifier: Apache-2.0
// gptq: the codes of another implementation, the optimality of each column's step by an independent
// dense solver, and what the pass does to networks.
#include <cmath>

#include "mase/base/file.h"
#include "mase/formats/frozen.h"
#include "mase/ir/evaluate.h"
#include "mase/passes/calibration.h"
#include "mase/passes/gptq_solver.h"
#include "mase/passes/pass.h"
#include "mase/passes/weight_method.h"
#include "passes/networks.h"

namespace mase::gptq_test {
namespace {

std::vector<double> doubles(const Tensor& tensor) {
  const Tensor as = tensor.to(DType::f64);
  return {as.data<double>(), as.data<double>() + as.numel()};
}

struct GroupScale {
  double scale = 1, zero = 0;
};

GroupScale fitted(const std::vector<double>& values, double largest_code, bool symmetric) {
  double low = 0, high = 0;
  for (const double value : values) low = std::min(low, value), high = std::max(high, value);
  if (symmetric) {
    high = std::max(-low, high);
    if (low < 0) low = -high;
  }
  if (low == 0 && high == 0) low = -1, high = 1;
  GroupScale result{(high - low) / largest_code, 0};
  result.zero = symmetric ? (largest_code + 1) / 2 : std::nearbyint(-low / result.scale);
  return result;
}

TEST(Gptq, HasTheCodesOfTheReference) {
  std::map<std::string, Tensor> tensors;
  for (const auto& [name, tensor] :
       load_safetensors(test::golden_path("ptq/gptq_layer.safetensors")))
    tensors[name] = tensor;
  const Value cases = read_json(test::golden_path("ptq/gptq_layer.json"));
  const int64_t rows = tensors.at("W").dim(0), columns = tensors.at("W").dim(1);
  int compared = 0;
  for (const auto& [name, options] : cases.as_dict()) {
    SCOPED_TRACE(name);
    const double most = std::ldexp(1.0, static_cast<int>(options["bits"].as_int())) - 1;
    const int64_t group = options["group"].as_int() < 0 ? columns : options["group"].as_int();
    const bool act = options["act_order"].as_bool();
    const bool dynamic = group < columns && !options["static_groups"].as_bool();
    const bool symmetric = options["symmetric"].as_bool();
    const Matrix hessian = doubles(tensors.at(options["hessian"].as_string()));
    const std::vector<double> scales = doubles(tensors.at(name + ".scale")),
                              zeros = doubles(tensors.at(name + ".zero"));
    const int64_t groups = static_cast<int64_t>(scales.size()) / rows;
    const std::vector<int64_t> order = gptq_order(hessian, columns, act);
    std::vector<int64_t> place(order.size());
    for (size_t i = 0; i < order.size(); ++i)
      place[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
    std::vector<GroupScale> own(scales.size());
    for (size_t i = 0; i < own.size(); ++i) own[i] = {scales[i], zeros[i]};
    std::vector<double> codes(static_cast<size_t>(rows * columns));
    GptqRule rule;
    rule.round = [&](int64_t r, int64_t c, double value) {
      const int64_t g = (dynamic ? place[static_cast<size_t>(c)] : c) / group;
      const GroupScale& s = own[static_cast<size_t>(r * groups + (groups > 1 ? g : 0))];
      const double code = std::clamp(std::nearbyint(value / s.scale) + s.zero, 0.0, most);
      codes[static_cast<size_t>(r * columns + c)] = code;
      return s.scale * (code - s.zero);
    };
    if (dynamic)
      rule.begin = [&](int64_t position, int64_t, const std::vector<double>& weight) {
        if (position % group != 0) return;
        for (int64_t r = 0; r < rows; ++r) {
          std::vector<double> values;
          for (int64_t i = position; i < std::min(columns, position + group); ++i)
            values.push_back(
                weight[static_cast<size_t>(r * columns + order[static_cast<size_t>(i)])]);
          GroupScale& slot = own[static_cast<size_t>(r * groups + position / group)];
          slot = fitted(values, most, symmetric);
          EXPECT_NEAR(slot.scale, scales[static_cast<size_t>(r * groups + position / group)],
                      1e-12);
        }
      };
    std::vector<double> weight = doubles(tensors.at("W"));
    ASSERT_TRUE(gptq_solve(weight, rows, columns, hessian, rule,
                           {act, 0.01, options["blocksize"].as_int()}));
    if (!options["codes_unique"].as_bool()) continue;
    const std::vector<double> wanted = doubles(tensors.at(name + ".codes"));
    int64_t differing = 0;
    for (size_t i = 0; i < codes.size(); ++i) differing += codes[i] != wanted[i];
    EXPECT_EQ(differing, 0);
    ++compared;
  }
  EXPECT_GE(compared, 20);
}

// After columns 0..i are fixed, the others are what least squares makes of them: solved here by
// Gaussian elimination, column by column, without any factor of an inverse.
std::vector<double> dense_gptq(std::vector<double> weight, int64_t rows, int64_t n, Matrix h,
                               const GptqRule& rule, double damping) {
  double mean = 0;
  for (int64_t i = 0; i < n; ++i)
    mean += h[static_cast<size_t>(i * n + i)] / static_cast<double>(n);
  for (int64_t i = 0; i < n; ++i) h[static_cast<size_t>(i * n + i)] += damping * mean;
  for (int64_t r = 0; r < rows; ++r) {
    double* w = weight.data() + r * n;
    const std::vector<double> original(w, w + n);
    for (int64_t i = 0; i < n; ++i) {
      w[i] = rule.round(r, i, w[i]);
      const int64_t m = n - i - 1;
      if (m == 0) break;
      // H_rest,rest d_rest = -H_rest,fixed d_fixed with d = w - original.
      std::vector<double> a(static_cast<size_t>(m * (m + 1)));
      for (int64_t p = 0; p < m; ++p) {
        for (int64_t q = 0; q < m; ++q)
          a[static_cast<size_t>(p * (m + 1) + q)] =
              h[static_cast<size_t>((i + 1 + p) * n + i + 1 + q)];
        double right = 0;
        for (int64_t f = 0; f <= i; ++f)
          right -= h[static_cast<size_t>((i + 1 + p) * n + f)] *
                   (w[f] - original[static_cast<size_t>(f)]);
        a[static_cast<size_t>(p * (m + 1) + m)] = right;
      }
      for (int64_t p = 0; p < m; ++p)
        for (int64_t q = p + 1; q < m; ++q) {
          const double factor =
              a[static_cast<size_t>(q * (m + 1) + p)] / a[static_cast<size_t>(p * (m + 1) + p)];
          for (int64_t k = p; k <= m; ++k)
            a[static_cast<size_t>(q * (m + 1) + k)] -=
                factor * a[static_cast<size_t>(p * (m + 1) + k)];
        }
      for (int64_t p = m - 1; p >= 0; --p) {
        double value = a[static_cast<size_t>(p * (m + 1) + m)];
        for (int64_t q = p + 1; q < m; ++q)
          value -= a[static_cast<size_t>(p * (m + 1) + q)] *
                   (w[i + 1 + q] - original[static_cast<size_t>(i + 1 + q)]);
        w[i + 1 + p] = original[static_cast<size_t>(i + 1 + p)] +
                       value / a[static_cast<size_t>(p * (m + 1) + p)];
      }
    }
  }
  return weight;
}

TEST(Gptq, EachStepIsTheLeastSquaresOne) {
  for (uint64_t seed = 0; seed < 30; ++seed) {
    Random random(seed, "gptq");
    const int64_t rows = 1 + static_cast<int64_t>(random.below(4)),
                  n = 1 + static_cast<int64_t>(random.below(9));
    std::vector<double> weight(static_cast<size_t>(rows * n)), x(static_cast<size_t>(3 * n * n));
    for (double& value : weight) value = random.normal();
    for (double& value : x) value = random.normal();
    Matrix h(static_cast<size_t>(n * n), 0.0);
    for (int64_t v = 0; v < 3 * n; ++v)
      for (int64_t i = 0; i < n; ++i)
        for (int64_t j = 0; j < n; ++j)
          h[static_cast<size_t>(i * n + j)] +=
              x[static_cast<size_t>(v * n + i)] * x[static_cast<size_t>(v * n + j)];
    const GptqRule rule{
        [](int64_t, int64_t, double value) { return std::nearbyint(value * 4) / 4; }};
    std::vector<double> fast = weight;
    ASSERT_TRUE(gptq_solve(fast, rows, n, h, rule, {false, 0.01, 3}));
    EXPECT_EQ(fast, dense_gptq(weight, rows, n, h, rule, 0.01)) << seed;
  }
}

TEST(Gptq, SingularMomentsChangeNothing) {
  std::vector<double> weight = {1, 2};
  EXPECT_FALSE(gptq_solve(weight, 1, 2, {1, 1, 1, 1},
                          {[](int64_t, int64_t, double) { return 0.0; }}, {true, 0, 128}));
  EXPECT_EQ(weight, (std::vector<double>{1, 2}));
}

Tensor drawn_rows(int64_t rows, const Shape& sample, uint64_t seed) {
  Shape shape = sample;
  shape.insert(shape.begin(), rows);
  Tensor x(shape);
  Random random(seed, "rows");
  // Features that go together: what rounding errors can be made good with.
  for (int64_t r = 0; r < rows; ++r) {
    const double common = random.normal();
    for (int64_t i = 0; i < x.numel() / rows; ++i)
      x.mutable_data<float>()[r * (x.numel() / rows) + i] =
          static_cast<float>(common + 0.5 * random.normal());
  }
  return x;
}

// Every format on a dense network and on a convolutional one: on the grid, and not worse.
TEST(Gptq, WorksOnEveryKindOfFormat) {
  const std::vector<Value> configs = {
      Dict{{"name", "integer"},
           {"weight_width", 4},
           {"weight_frac_width", 3},
           {"weight_only", true}},
      Dict{{"name", "scale_integer"},
           {"weight_width", 3},
           {"weight_granularity", "channel"},
           {"weight_only", true}},
      Dict{{"name", "scale_integer"},
           {"weight_width", 4},
           {"weight_affine", true},
           {"weight_granularity", "channel"},
           {"weight_only", true}},
      Dict{{"name", "scale_integer"},
           {"weight_width", 4},
           {"weight_granularity", "tensor"},
           {"weight_only", true}},
      Dict{{"name", "mxint"}, {"weight_width", 4}, {"weight_only", true}},
      Dict{{"name", "mxfp"},
           {"weight_exponent_width", 2},
           {"weight_frac_width", 1},
           {"weight_only", true}},
      Dict{{"name", "ternary"}, {"weight_scaling_factor", true}, {"weight_only", true}},
      Dict{{"name", "minifloat_ieee"},
           {"weight_width", 6},
           {"weight_exponent_width", 3},
           {"weight_only", true}},
      Dict{{"name", "nf4"}, {"weight_only", true}},
      Dict{{"name", "group_integer"},
           {"weight_width", 4},
           {"weight_group_size", 8},
           {"weight_only", true}},
      Dict{{"name", "group_integer"},
           {"weight_width", 3},
           {"weight_group_size", 8},
           {"weight_affine", true},
           {"weight_only", true}}};
  for (const char* model : {"jsc-tiny", "lenet"})
    for (const Value& config : configs) {
      SCOPED_TRACE(model + to_json(config));
      Graph graph = make_model(model);
      const Graph original = graph;
      PassContext context;
      context.original = &original;
      context.samples = drawn_rows(64, graph.node(graph.placeholders().front()).sample_shape, 3);
      Dict rules{{"linear", Dict{{"config", config}}}};
      if (std::string(model) == "lenet") rules.set("conv2d", Dict{{"config", config}});
      run_pass(graph, "quantize", Value(rules), context);
      const PassResult result =
          run_pass(graph, "gptq", Dict{{"rows", 32}, {"heldout_rows", 32}}, context);
      EXPECT_EQ(result.data["calibration"]["rows"], Value(32));
      for (const auto& [name, layer] : result.data["layers"].as_dict()) {
        EXPECT_LE(layer["heldout_after"].as_double(), layer["heldout_before"].as_double()) << name;
        EXPECT_EQ(layer["note"].as_string().find("round the result"), std::string::npos) << name;
      }
      run_pass(graph, "verify_quantization", Dict{{"num_samples", 8}, {"show", 0}}, context);
      for (const auto& [path, module] : graph.modules())
        if (const Quantizer* quantizer = module.quantization.find("weight");
            quantizer && result.data["layers"].as_dict().size() > 0) {
          const Value& layers = result.data["layers"];
          bool kept = false;
          for (const NodeId id : graph.order())
            if (graph.node(id).target == path)
              kept = layers[graph.node(id).name]["kept"] == Value(true);
          if (kept) {
            EXPECT_TRUE(
                quantize(*quantizer, *module.find("weight")).same_bits(*module.find("weight")));
          }
        }
    }
}

// Second moments of a convolution's windows, against its own products: W H W' is the power of the
// outputs.
TEST(Calibration, WindowsGiveThePowerOfOutputs) {
  for (const auto& attributes : std::vector<Dict>{{{"in_channels", 4},
                                                   {"out_channels", 6},
                                                   {"kernel_size", 3},
                                                   {"stride", 2},
                                                   {"padding", 1},
                                                   {"bias", false}},
                                                  {{"in_channels", 4},
                                                   {"out_channels", 6},
                                                   {"kernel_size", 3},
                                                   {"groups", 2},
                                                   {"dilation", 2},
                                                   {"bias", false}},
                                                  {{"in_channels", 4},
                                                   {"out_channels", 4},
                                                   {"kernel_size", 3},
                                                   {"groups", 4},
                                                   {"padding", "same"},
                                                   {"bias", false}}}) {
    Graph graph;
    const NodeId x = graph.add_placeholder("x", {4, 7, 7});
    const NodeId y = graph.add_module("conv", make_module("conv2d", attributes, 1, "conv"), {x});
    graph.add_output({y});
    const Tensor rows = drawn_rows(5, {4, 7, 7}, 1);
    const ProductInputs inputs = *product_inputs(graph, {y}, {rows}).at(y);
    const Tensor& weight = *graph.modules().at("conv").find("weight");
    const double power =
        output_error(weight, Tensor(weight.shape()), inputs) * static_cast<double>(inputs.vectors);
    ASSERT_EQ(graph.modules().at("conv").find("bias"), nullptr);
    ASSERT_EQ(
        inputs.vectors,
        static_cast<int64_t>(evaluate(graph, {Array::from(rows)})[0].data.size()) / weight.dim(0));
    double wanted = 0;
    const std::vector<Array> results = evaluate(graph, {Array::from(rows)});
    for (const double value : results[0].data) wanted += value * value;
    EXPECT_NEAR(power, wanted, 1e-6 * wanted);
  }
}

TEST(Calibration, TooFewRowsAreOneLine) {
  Graph graph = make_model("jsc-tiny");
  PassContext context;
  context.samples = drawn_rows(20, graph.node(graph.placeholders().front()).sample_shape, 3);
  run_pass(
      graph, "quantize",
      Dict{{"linear",
            Dict{{"config", Dict{{"name", "mxint"}, {"weight_width", 4}, {"weight_only", true}}}}}},
      context);
  const std::string before = graph.text();
  try {
    run_pass(graph, "gptq", Dict{{"rows", 64}}, context);
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("the data have 20"), std::string::npos)
        << error.what();
  }
  EXPECT_EQ(graph.text(), before);
}

}  // namespace
}  // namespace mase::gptq_test
