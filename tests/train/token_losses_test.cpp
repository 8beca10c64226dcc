// SPDX-License-Identifier: Apache-2.0
// The loss of each token and its gradients, against what the transformers library gave
// (gradients.json), and by the two kernels.
#include <cmath>
#include <map>

#include "engine/kernel_rows.h"
#include "mase/base/random.h"
#include "mase/engine/kernels/kernels.h"
#include "mase/engine/program.h"
#include "mase/io/networks/checkpoint.h"
#include "mase/models/hf.h"
#include "mase/train/loss.h"
#include "support/support.h"

namespace mase::token_losses_test {
namespace {

std::map<std::string, Tensor> table_of(const std::string& path) {
  std::map<std::string, Tensor> result;
  for (auto& [key, tensor] : load_safetensors(path)) result[key] = tensor;
  return result;
}

// Hugging Face moves the labels inside: what is told at a place is the token behind it.
Tensor moved(const Tensor& labels) {
  Tensor result(labels.shape(), DType::i32);
  const int64_t length = labels.dim(1);
  for (int64_t i = 0; i < labels.numel(); ++i)
    result.mutable_data<int32_t>()[i] =
        (i + 1) % length == 0 ? -100 : static_cast<int32_t>(labels.item(i + 1));
  return result;
}

TEST(TokenLosses, LossesAndGradientsAreThoseOfTransformers) {
  int compared = 0;
  for (const char* name : {"llama_sharded", "gpt2", "opt", "qwen3", "mistral"}) {
    const std::string path = test::golden_path(std::string("language/") + name);
    Checkpoint folder = load_checkpoint(path);
    const std::map<std::string, Tensor> io = table_of(path + "/io.safetensors");
    const Tensor ids = io.at("input_ids").to(DType::f32), labels = moved(io.at("labels"));
    Graph graph =
        make_hf_network(folder.contents, folder.tensors, {.shapes = {{ids.dim(1)}}}, path);
    load_into(graph, folder, path);
    CompileOptions options;
    options.training = true;
    options.batch_size = ids.dim(0);
    options.loss = make_loss("cross_entropy");
    Program program = Program::compile(graph, options);
    Batch batch;
    batch.inputs = {RowTensor(ids)};
    batch.target = RowTensor(labels, "target");
    batch.size = ids.dim(0);
    const StepResult result = program.forward_backward(batch);
    int64_t counted = 0;
    for (const int32_t label : labels.values<int32_t>()) counted += label >= 0;
    EXPECT_EQ(result.weight, static_cast<double>(counted));
    EXPECT_NEAR(result.loss, io.at("loss").item(), 1e-5 * io.at("loss").item()) << name;
    const Value norms = read_json(path + "/gradients.json")["gradient_norms_of_loss"];
    for (const ParameterView& parameter : program.parameters()) {
      const Value& wanted = norms[parameter.name];
      if (!wanted.is_number()) continue;
      double sum = 0;
      for (const float g : parameter.gradient) sum += double{g} * double{g};
      EXPECT_NEAR(std::sqrt(sum), wanted.as_double(), 2e-5 * (1 + wanted.as_double()))
          << name << " " << parameter.name;
      ++compared;
    }
    // The same rows, taken by their numbers, and evaluated alone: losses weigh by their tokens.
    CompileOptions evaluating = options;
    evaluating.training = false;
    Program evaluation = program.sharing(evaluating);
    const std::vector<uint32_t> second = {1};
    double sum = 0, weight = 0;
    for (int64_t row = 0; row < ids.dim(0); ++row) {
      Batch one = batch;
      one.size = 1;
      one.first_row = row;
      if (row == 1) one.rows = second;
      const StepResult part = evaluation.forward(one);
      sum += part.loss * part.weight;
      weight += part.weight;
    }
    EXPECT_NEAR(sum / weight, result.loss, 1e-5 * result.loss) << name;
  }
  EXPECT_GT(compared, 100);
}

TEST(TokenLosses, ABatchInWhichNothingCountsHasNoGradient) {
  const std::string path = test::golden_path("language/llama_sharded");
  Checkpoint folder = load_checkpoint(path);
  Graph graph = make_hf_network(folder.contents, folder.tensors, {.shapes = {{5}}}, path);
  load_into(graph, folder, path);
  CompileOptions options;
  options.training = true;
  options.batch_size = 2;
  options.loss = make_loss("cross_entropy");
  Program program = Program::compile(graph, options);
  const std::vector<float> ids = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
  const Tensor labels = Tensor::of<int32_t>({2, 5}, std::vector<int32_t>(10, -100));
  Batch batch;
  batch.inputs = {RowTensor(std::span<const float>(ids), 5)};
  batch.target = RowTensor(labels, "target");
  batch.size = 2;
  const StepResult result = program.forward_backward(batch);
  EXPECT_EQ(result.loss, 0);
  EXPECT_EQ(result.weight, 0);
  for (const float g : program.gradient_memory()) ASSERT_EQ(g, 0);
  Tensor wrong = labels;
  wrong.mutable_data<int32_t>()[3] = 257;
  batch.target = RowTensor(wrong, "target");
  EXPECT_THROW(program.forward_backward(batch), Error);
}

TEST(TokenLosses, KernelsAgreeWhereSomeDoNotCount) {
  const int64_t classes = 11, n = 37;
  const kernels::Rows logits(classes, n, 3);
  kernels::Rows fast(classes, n, 4), plain(classes, n, 5);
  Random random(3, "tokens");
  std::vector<int32_t> labels(static_cast<size_t>(logits.stride));
  for (int64_t i = 0; i < n; ++i)
    labels[static_cast<size_t>(i)] = static_cast<int32_t>(random.below(classes + 3)) - 3;
  const auto one = kernels::cross_entropy(logits.data, classes, logits.stride, n, labels.data(),
                                          nullptr, 0.5f, fast.data);
  const auto other = kernels::reference::cross_entropy(logits.data, classes, logits.stride, n,
                                                       labels.data(), nullptr, 0.5f, plain.data);
  EXPECT_NEAR(one.loss, other.loss, 1e-4);
  EXPECT_EQ(one.correct, other.correct);
  kernels::expect_rows(fast, plain, 1e-6, "gradient");
  for (int64_t i = 0; i < n; ++i) {
    if (labels[static_cast<size_t>(i)] >= 0) continue;
    for (int64_t c = 0; c < classes; ++c) EXPECT_EQ(fast.data[c * fast.stride + i], 0);
  }
}

}  // namespace
}  // namespace mase::token_losses_test
