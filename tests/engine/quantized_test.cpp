// SPDX-License-Identifier: Apache-2.0
// Quantised operands inside programs: PyTorch's straight-through gradients of a quantised linear
// layer, fusion into the sweep before, and weights kept in float.
#include <cmath>
#include <map>

#include "mase/base/random.h"
#include "mase/engine/program.h"
#include "mase/io/checkpoint.h"
#include "mase/ir/evaluate.h"
#include "mase/models/model.h"
#include "support/support.h"

namespace mase {
namespace {

Quantization integer_quantization(int64_t width, int64_t frac) {
  Quantization quantization;
  for (const std::string operand : {"data_in", "weight", "bias"})
    quantization.operands[operand] =
        make_quantizer("integer", Value(Dict{{"width", width}, {"frac_width", frac}}));
  quantization.config = Dict{{"name", "integer"}};
  return quantization;
}

TEST(Quantized, StraightThroughGradientsOfPyTorch) {
  std::map<std::string, Tensor> golden;
  for (auto& [name, tensor] : load_safetensors(test::golden_path("torch/qlinear_ste.safetensors")))
    golden.emplace(name, tensor);
  const std::pair<int64_t, int64_t> formats[] = {{8, 4}, {4, 2}};
  for (int index = 0; index < 2; ++index) {
    const auto at = [&](const std::string& name) {
      return golden.at(fmt::format("c{}.{}", index, name));
    };
    // The layer before has the identity as weight: its gradient gives the one of x.
    Graph graph;
    const NodeId input = graph.add_placeholder("x", {16});
    Module before =
        make_module("linear", Value(Dict{{"in_features", 16}, {"out_features", 16}}), 0, "before");
    for (auto& [name, tensor] : before.parameters) tensor = Tensor(tensor.shape());
    for (int64_t i = 0; i < 16; ++i) before.find("weight")->mutable_data<float>()[i * 17] = 1;
    const NodeId x = graph.add_module("before", before, {input});
    Module layer =
        make_module("linear", Value(Dict{{"in_features", 16}, {"out_features", 5}}), 0, "layer");
    *layer.find("weight") = at("w");
    *layer.find("bias") = at("b");
    layer.quantization = integer_quantization(formats[index].first, formats[index].second);
    graph.add_output({graph.add_module("layer", layer, {x})});
    CompileOptions options;
    options.training = true;
    options.batch_size = 6;
    options.loss = LossKind::mse;
    Program program = Program::compile(graph, options);
    // Targets for which the gradient of the mean squared error is the golden one: the error is
    // large, so the targets are double-rounded; 1e-5 is what single precision leaves.
    const Tensor y = at("y"), go = at("go");
    Tensor targets(y.shape());
    for (int64_t i = 0; i < 30; ++i)
      targets.mutable_data<float>()[i] = static_cast<float>(y.item(i) - go.item(i) * 30 / 2);
    Program::Batch batch;
    const Tensor source = at("x");
    batch.sources = {source.data<float>()};
    batch.targets = targets.data<float>();
    batch.size = 6;
    program.forward_backward(batch);
    std::vector<float> result(30);
    program.read_output(0, result.data());
    for (int64_t i = 0; i < 30; ++i)
      EXPECT_NEAR(result[static_cast<size_t>(i)], y.item(i),
                  1e-6 * std::max(1.0, std::abs(y.item(i))));
    for (const ParameterView& view : program.parameters()) {
      if (view.name == "before.bias" || view.name == "before.weight") continue;
      const Tensor wanted = at(view.name == "layer.weight" ? "gw" : "gb");
      for (size_t i = 0; i < view.gradient.size(); ++i)
        EXPECT_NEAR(view.gradient[i], wanted.item(static_cast<int64_t>(i)),
                    2e-5 * std::max(1.0, std::abs(wanted.item(static_cast<int64_t>(i)))))
            << view.name;
    }
    // db of the identity layer is the sum over the batch of gx.
    for (const ParameterView& view : program.parameters())
      if (view.name == "before.bias")
        for (int64_t i = 0; i < 16; ++i) {
          double wanted = 0;
          for (int64_t b = 0; b < 6; ++b) wanted += at("gx").item(b * 16 + i);
          EXPECT_NEAR(view.gradient[static_cast<size_t>(i)], wanted, 5e-5);
        }
  }
}

TEST(Quantized, ActivationsAreRoundedInTheSweepBefore) {
  Graph graph = make_model("jsc-10x");
  for (auto& [path, module] : graph.modules())
    if (module.op == "linear") module.quantization = integer_quantization(8, 4);
  CompileOptions options;
  options.training = true;
  options.batch_size = 32;
  options.loss = LossKind::cross_entropy;
  Program program = Program::compile(graph, options);
  const std::string dump = program.dump();
  EXPECT_NE(dump.find("batch_norm+relu+quantize"), std::string::npos) << dump;
  EXPECT_EQ(dump.find("quantize_gradient"), std::string::npos) << dump;
}

TEST(Quantized, InferenceMatchesOracle) {
  for (const std::string format : {"integer", "block_fp", "mxint"}) {
    Graph graph = make_model("jsc-toy");
    Random random(3, "inputs");
    Tensor x({19, 16});
    for (int64_t i = 0; i < x.numel(); ++i)
      x.mutable_data<float>()[i] = static_cast<float>(random.uniform(-2, 2));
    for (auto& [path, module] : graph.modules()) {
      if (module.op != "linear") continue;
      const Value config =
          format == "integer" ? Value(Dict{{"width", 16}, {"frac_width", 10}}) : Value(Dict());
      for (const std::string operand : {"data_in", "weight"}) {
        QuantizerPtr quantizer;
        try {
          quantizer = make_quantizer(format, config);
        } catch (const Error&) {
          continue;  // a family with required keys of its own
        }
        module.quantization.operands[operand] = quantizer;
      }
    }
    const std::vector<Array> wanted = evaluate(graph, {Array::from(x)});
    const std::vector<Tensor> got = run(graph, {x});
    // A value at the edge between two codes may go either way in single precision.
    int far = 0;
    for (int64_t i = 0; i < got[0].numel(); ++i)
      far += std::abs(got[0].item(i) - wanted[0].data[static_cast<size_t>(i)]) >
             (format == "integer" ? 5e-3 : 0.2);
    EXPECT_LE(far, 2) << format;
  }
}

}  // namespace
}  // namespace mase
