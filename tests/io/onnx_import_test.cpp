// SPDX-License-Identifier: Apache-2.0
// Models that other tools wrote, with inputs and the outputs their own executors give: all in
// tests/golden/onnx, and in ../shared/onnx where that is. Both the engine and the plain reference
// run them.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>

#include "mase/engine/program.h"
#include "mase/io/networks/checkpoint.h"
#include "mase/io/numpy/numpy_tensors.h"
#include "mase/io/onnx/read/import.h"
#include "mase/ir/evaluate.h"
#include "support/support.h"

namespace mase::onnx_import_test {
namespace {

namespace fs = std::filesystem;

struct Case {
  std::string name, model;
  std::vector<Tensor> inputs;
  Tensor expected;
};

Tensor array_of(const fs::path& path) { return read_numpy_tensors(path.string()).at(0).second; }

Case folder_case(const fs::path& folder) {
  Case result{folder.filename().string(), (folder / "model.onnx").string(), {}, {}};
  for (int i = 0; fs::exists(folder / fmt::format("input_{}.npy", i)); ++i)
    result.inputs.push_back(array_of(folder / fmt::format("input_{}.npy", i)).to(DType::f32));
  result.expected = array_of(folder / "output_0.npy").to(DType::f32);
  return result;
}

// "in:<name>" and "out:<name>" of an .npz.
Case public_case(const fs::path& model) {
  Case result{model.stem().string(), model.string(), {}, {}};
  fs::path arrays = model;
  arrays.replace_extension(".io.npz");
  for (const auto& [name, tensor] : read_numpy_tensors(arrays.string()))
    if (name.rfind("in:", 0) == 0)
      result.inputs.push_back(tensor.to(DType::f32));
    else
      result.expected = tensor.to(DType::f32);
  return result;
}

std::vector<Case> cases_in(const fs::path& root) {
  std::vector<Case> cases;
  if (!fs::exists(root)) return cases;
  std::set<fs::path> entries;
  for (const auto& entry : fs::recursive_directory_iterator(root)) entries.insert(entry.path());
  for (const fs::path& path : entries) {
    if (fs::exists(path / "model.onnx")) cases.push_back(folder_case(path));
    if (path.extension() == ".onnx" && path.parent_path().filename() == "public")
      cases.push_back(public_case(path));
  }
  return cases;
}

struct Difference {
  double largest = 0, scale = 1;
  double off = 0;  // the share of values that are off by more than 1e-4 of the scale
};

Difference difference(const Tensor& got, const Tensor& wanted) {
  Difference result;
  for (int64_t i = 0; i < wanted.numel(); ++i)
    if (std::isfinite(wanted.item(i)))
      result.scale = std::max(result.scale, std::fabs(wanted.item(i)));
  int64_t off = 0;
  for (int64_t i = 0; i < wanted.numel(); ++i) {
    const double a = got.item(i), b = wanted.item(i);
    if ((std::isnan(a) && std::isnan(b)) || a == b) continue;
    const double d = std::isnan(a - b) ? INFINITY : std::fabs(a - b);
    result.largest = std::max(result.largest, d);
    off += d > 1e-4 * result.scale;
  }
  result.off = static_cast<double>(off) / static_cast<double>(std::max<int64_t>(1, wanted.numel()));
  return result;
}

// What the makers of the files say about executors: float networks agree to 1e-5, quantised ones
// but for values on a rounding edge, single nodes to the bit.
void expect_close(const Case& c, const Tensor& got, const char* how) {
  ASSERT_EQ(got.shape(), c.expected.shape()) << c.name << " " << how;
  const Difference d = difference(got, c.expected);
  std::printf("%-32s %-9s max |d| %.2g, off %.4f\n", c.name.c_str(), how, d.largest, d.off);
  const bool micro = c.model.find("/micro/") != std::string::npos;
  if (micro) {
    EXPECT_EQ(d.largest, 0) << c.name << " " << how;
  } else if (c.name[0] == 'f') {
    EXPECT_LE(d.largest, 1e-5 * d.scale) << c.name << " " << how;
  } else if (c.name.rfind("o05", 0) == 0 || c.name.rfind("o09", 0) == 0) {
    // The optimised and the plain form of these differ in onnxruntime itself.
    EXPECT_LE(d.largest, c.name[2] == '5' ? 8.8e-2 : 1.1e-2) << c.name << " " << how;
  } else {
    EXPECT_LE(d.off, 0.005) << c.name << " " << how;
    EXPECT_LE(d.largest, 0.5 * d.scale) << c.name << " " << how;
  }
}

void check(const Case& c) {
  Graph graph;
  try {
    std::vector<Shape> shapes;  // for sizes that the file leaves open
    for (const Tensor& input : c.inputs) shapes.push_back(input.shape());
    graph = onnx::import_file(c.model, {}, false, shapes).graph;
  } catch (const Error& error) {
    ADD_FAILURE() << error.what();
    return;
  }
  std::vector<Array> arrays;
  std::vector<Tensor> inputs;
  const bool whole = graph.meta.contains("whole_batch");  // a batch of one in front
  const auto with_batch = [&](const Tensor& tensor) {
    Shape shape = tensor.shape();
    if (whole) shape.insert(shape.begin(), 1);
    return tensor.reshaped(shape);
  };
  const auto without_batch = [&](const Tensor& tensor) {
    return whole ? tensor.reshaped({tensor.shape().begin() + 1, tensor.shape().end()}) : tensor;
  };
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    arrays.push_back(Array::from(with_batch(c.inputs[i])));
    inputs.push_back(with_batch(c.inputs[i]).to(graph.node(graph.placeholders().at(i)).element));
  }
  // Quantised values on a rounding edge fall otherwise in double precision.
  if (c.name[0] == 'f' || c.model.find("/micro/") != std::string::npos)
    expect_close(c, without_batch(evaluate(graph, arrays).at(0).to_tensor()), "reference");
  expect_close(c, without_batch(run(graph, inputs).at(0)), "engine");
}

TEST(OnnxImport, GoldenModelsGiveTheirMakersOutputs) {
  const std::vector<Case> cases = cases_in(test::golden_path("onnx"));
  ASSERT_GE(cases.size(), 40u);
  for (const Case& c : cases) check(c);
}

TEST(OnnxImport, SharedModelsGiveTheirMakersOutputs) {
  const std::vector<Case> cases = cases_in(test::source_path("../shared/onnx"));
  if (cases.empty()) GTEST_SKIP() << "no folder ../shared/onnx";
  for (const Case& c : cases) check(c);
}

// A scale for each row: rows are entries of the batch, so the whole input is one sample.
TEST(OnnxImport, WhatDiffersFromOneEntryOfTheBatchToTheNextIsOneSample) {
  const onnx::Imported imported =
      onnx::import_file(test::golden_path("onnx/micro/bipolar_per_row/model.onnx"));
  EXPECT_TRUE(imported.graph.meta.contains("whole_batch"));
  ASSERT_EQ(imported.notes.size(), 1u);
  EXPECT_NE(imported.notes[0].find("its inputs as a whole are one sample"), std::string::npos);
}

// What exporters write in their parts are layers again.
TEST(OnnxImport, IdiomsAreLayers) {
  const fs::path root = test::source_path("../shared/onnx");
  if (!fs::exists(root)) GTEST_SKIP() << "no folder ../shared/onnx";
  const auto counts = [&](const std::string& name) {
    std::map<std::string, int> found;
    const Graph graph = onnx::import_file((root / name / "model.onnx").string()).graph;
    for (const NodeId id : graph.order()) ++found[graph.node(id).target];
    return found;
  };
  for (const char* name :
       {"f09_encoder_dynamo", "f11_bert_tiny_dynamo", "f13_decoder_causal_dynamo"})
    EXPECT_GE(counts(name)["scaled_dot_product_attention"], 1) << name;
  EXPECT_EQ(counts("c09_encoder_w8a8_qcdq")["gelu"], 1);  // written with Erf
}

// The layers of f01 are those of the network it was exported from.
TEST(OnnxImport, ModulesHaveTheirPyTorchNames) {
  const Graph graph =
      onnx::import_file(test::golden_path("onnx/f01_jsc_toy_dynamo/model.onnx")).graph;
  std::vector<std::string> paths;
  for (const auto& [path, module] : graph.modules()) paths.push_back(path + " " + module.op);
  EXPECT_EQ(paths, (std::vector<std::string>{"seq_blocks.0 batch_norm1d", "seq_blocks.1 relu",
                                             "seq_blocks.10 relu", "seq_blocks.2 linear",
                                             "seq_blocks.4 relu", "seq_blocks.5 linear",
                                             "seq_blocks.7 relu", "seq_blocks.8 linear"}));
}

// Power-of-two scales become fixed point, which hardware takes.
TEST(OnnxImport, PowerOfTwoScalesAreFixedPoint) {
  const Graph graph =
      onnx::import_file(test::golden_path("onnx/q03_jsc_w6a6_po2/model.onnx")).graph;
  size_t fixed = 0;
  for (const auto& [path, module] : graph.modules())
    for (const auto& [operand, quantizer] : module.quantization.operands) {
      EXPECT_EQ(quantizer->format, "integer") << path << " " << operand;
      ++fixed;
    }
  EXPECT_EQ(fixed, 6u);
}

TEST(OnnxImport, SavedNetworksGiveTheSameNumbers) {
  for (const char* name : {"q05_jsc_w5a5_zero_point", "o07_jsc_qdq_int16act", "q07_jsc_fp8_e4m3"}) {
    const Case c = folder_case(test::golden_path(std::string("onnx/") + name));
    const Graph graph = onnx::import_file(c.model).graph;
    const std::string file = test::temporary_folder() + "/net.mz";
    save_mz(file, graph);
    const Graph loaded = *load_checkpoint(file).graph;
    EXPECT_EQ(loaded.text(), graph.text());
    EXPECT_TRUE(run(loaded, c.inputs).at(0).same_bits(run(graph, c.inputs).at(0))) << name;
  }
}

}  // namespace
}  // namespace mase::onnx_import_test
