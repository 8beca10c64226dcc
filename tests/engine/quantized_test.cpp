// SPDX-License-Identifier: Apache-2.0
// Quantised operands inside programs: fusion into the sweep before, and weights kept in float. The
// gradients are checked in tests/formats/straight_through_test.cpp.
#include <cmath>

#include "mase/base/random.h"
#include "mase/engine/program.h"
#include "mase/ir/evaluate.h"
#include "mase/models/model.h"
#include "mase/train/loss.h"
#include "support/support.h"

namespace mase::quantized_test {
namespace {

Quantization integer_quantization(int64_t width, int64_t frac) {
  Quantization quantization;
  for (const std::string operand : {"data_in", "weight", "bias"})
    quantization.operands[operand] =
        make_quantizer("integer", Value(Dict{{"width", width}, {"frac_width", frac}}));
  quantization.config = Dict{{"name", "integer"}};
  return quantization;
}

TEST(Quantized, ActivationsAreRoundedInTheSweepBefore) {
  Graph graph = make_model("jsc-10x");
  for (auto& [path, module] : graph.modules())
    if (module.op == "linear") module.quantization = integer_quantization(8, 4);
  CompileOptions options;
  options.training = true;
  options.batch_size = 32;
  options.loss = make_loss("cross_entropy");
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
      const Value config = format == "integer" ? Value(Dict{{"width", 16}, {"frac_width", 10}})
                           : format == "mxint" ? Value(Dict{{"width", 6}})
                                               : Value(Dict());
      for (const std::string operand : {"data_in", "weight"})
        module.quantization.operands[operand] = make_quantizer(format, config);
    }
    const std::vector<Array> wanted = evaluate(graph, {Array::from(x)});
    const std::vector<Tensor> got = run(graph, {x});
    // Rounded, and not the float network beside itself.
    EXPECT_FALSE(got[0].same_bits(run(make_model("jsc-toy"), {x})[0])) << format;
    // A value at the edge between two codes may go either way in single precision.
    int far = 0;
    for (int64_t i = 0; i < got[0].numel(); ++i)
      far += std::abs(got[0].item(i) - wanted[0].data[static_cast<size_t>(i)]) >
             (format == "integer" ? 5e-3 : 0.2);
    EXPECT_LE(far, 2) << format;
  }
}

}  // namespace
}  // namespace mase::quantized_test
