// SPDX-License-Identifier: Apache-2.0
// Encoders of Hugging Face folders against PyTorch (scripts/make_hf_golden.py).
#include "mase/models/hf.h"

#include <cmath>

#include "mase/engine/program.h"
#include "mase/io/networks/checkpoint.h"
#include "mase/ir/evaluate.h"
#include "mase/ir/value_type.h"
#include "support/support.h"

namespace mase::hf_test {
namespace {

const Tensor& named(const TensorTable& table, const std::string& name) {
  for (const auto& [own, tensor] : table)
    if (own == name) return tensor;
  throw Error(name, "is missing");
}

TEST(Hf, TinyBertIsPyTorchs) {
  Checkpoint folder = load_checkpoint(test::golden_path("hf/tiny"));
  Graph graph = make_hf_network(folder.contents, folder.tensors, {.shapes = {{7}}}, "hf/tiny");
  verify(graph);
  EXPECT_EQ(infer_types(graph)[static_cast<size_t>(graph.placeholders()[0])][0].text(),
            "int64[N, 7]");
  const LoadReport report = load_into(graph, folder, "hf/tiny");
  EXPECT_EQ(report.taken.size(), folder.tensors.size());

  const Checkpoint expected = load_checkpoint(test::golden_path("hf/expected.safetensors"));
  const Tensor& ids = named(expected.tensors, "ids");
  const std::vector<Tensor> results = run(graph, {ids});
  const std::vector<Array> reference = evaluate(graph, {Array::from(ids)});
  const char* const names[] = {"last_hidden_state", "pooler_output"};
  ASSERT_EQ(results.size(), 2u);
  for (size_t k = 0; k < 2; ++k) {
    const Tensor& wanted = named(expected.tensors, names[k]);
    ASSERT_EQ(results[k].shape(), wanted.shape());
    for (int64_t i = 0; i < wanted.numel(); ++i) {
      EXPECT_NEAR(results[k].item(i), wanted.item(i), 1e-5) << names[k] << " " << i;
      EXPECT_NEAR(reference[k].data[static_cast<size_t>(i)], wanted.item(i), 1e-5);
    }
  }
}

std::string fault(const std::function<void(Value& config)>& change) {
  Checkpoint folder = load_checkpoint(test::golden_path("hf/tiny"));
  change(folder.contents);
  try {
    make_hf_network(folder.contents, folder.tensors, {}, "there");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Hf, WhatIsNotKnownIsRefused) {
  EXPECT_EQ(fault([](Value&) {}), "");
  EXPECT_EQ(fault([](Value& c) { c["model_type"] = "mamba"; }),
            "there: config.json: a network of type 'mamba'; known: bert, distilbert, gpt2, llama, "
            "mistral, opt, qwen2, qwen3, roberta, vit");
  EXPECT_NE(fault([](Value& c) { c["hidden_act"] = "swish_x"; }).find("activation 'swish_x'"),
            std::string::npos);
  EXPECT_NE(fault([](Value& c) { c["hidden_size"] = -4; }).find("'hidden_size' is no whole"),
            std::string::npos);
  EXPECT_NE(fault([](Value& c) { c["num_attention_heads"] = 5; }).find("12 features in 5 heads"),
            std::string::npos);
  EXPECT_NE(fault([](Value& c) {
              c["position_embedding_type"] = "relative_key";
            }).find("positions 'relative_key'"),
            std::string::npos);
}

}  // namespace
}  // namespace mase::hf_test
