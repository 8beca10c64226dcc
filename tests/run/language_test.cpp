// SPDX-License-Identifier: Apache-2.0
// Perplexity and texts token by token, against whole runs and what the transformers library chose.
#include "mase/run/language.h"

#include <cmath>

#include "mase/engine/program.h"
#include "mase/models/hf.h"
#include "support/support.h"

namespace mase::language_test {
namespace {

struct Text {
  Graph graph;
  std::map<std::string, Tensor> io;

  explicit Text(const std::string& name) {
    const std::string path = test::golden_path("language/" + name);
    graph = graph_of_file(path);
    for (auto& [key, tensor] : load_safetensors(path + "/io.safetensors")) io[key] = tensor;
  }
  std::vector<int32_t> row(const std::string& key, int64_t count) const {
    std::vector<int32_t> ids;
    for (int64_t i = 0; i < count; ++i) ids.push_back(static_cast<int32_t>(io.at(key).item(i)));
    return ids;
  }
};

const char* const decoders[] = {"llama_sharded", "llama_bf16", "mistral", "qwen2",
                                "qwen3",         "gpt2",       "opt"};

TEST(Language, TextsAreTransformersAndLogitsThoseOfAWholeRun) {
  for (const char* name : decoders) {
    const Text text(name);
    const std::vector<int32_t> all = text.row("greedy", 18);
    GenerateSpec spec{.prompt = {all.begin(), all.begin() + 6}, .tokens = 12};
    std::vector<std::vector<float>> steps;
    const std::vector<int32_t> got = generate(text.graph, spec, {}, &steps);
    EXPECT_EQ(got, std::vector<int32_t>(all.begin() + 6, all.end())) << name;
    // Each step's logits are those of one run over everything before it.
    Tensor ids({1, 17}, DType::i64);
    for (int64_t i = 0; i < 17; ++i) ids.mutable_data<int64_t>()[i] = all[static_cast<size_t>(i)];
    const Tensor whole = run(resized_hf_network(text.graph, {.shapes = {{17}}}), {ids}).at(0);
    const int64_t width = whole.dim(2);
    double most = 1, worst = 0;
    for (size_t step = 0; step < steps.size(); ++step)
      for (int64_t c = 0; c < width; ++c) {
        const double wanted = whole.item((5 + static_cast<int64_t>(step)) * width + c);
        most = std::max(most, std::fabs(wanted));
        worst = std::max(worst, std::fabs(wanted - double{steps[step][static_cast<size_t>(c)]}));
      }
    EXPECT_LE(worst, 1e-6 * most) << name;
  }
}

TEST(Language, DrawnTextsDependOnTheSeedOnly) {
  const Text text("llama_sharded");
  GenerateSpec spec{.prompt = {3, 5}, .tokens = 8, .temperature = 1.0, .seed = 4};
  const std::vector<int32_t> first = generate(text.graph, spec);
  spec.threads = 2;
  EXPECT_EQ(generate(text.graph, spec), first);
  spec.seed = 5;
  EXPECT_NE(generate(text.graph, spec), first);
  const std::vector<int32_t> likeliest = generate(text.graph, {.prompt = {3, 5}, .tokens = 8});
  spec.top_k = 1;
  EXPECT_EQ(generate(text.graph, spec), likeliest);
  spec.top_k = 0;
  spec.top_p = 1e-9;
  EXPECT_EQ(generate(text.graph, spec), likeliest);
  spec.ends = {likeliest[2]};
  EXPECT_LE(generate(text.graph, spec).size(), 3u);
  spec.prompt = {100000};
  EXPECT_THROW(generate(text.graph, spec), Error);
  EXPECT_THROW(generate(text.graph, {.prompt = {1}, .tokens = 1000}), Error);
}

TEST(Language, PerplexityIsTheMeanOverAllTokens) {
  for (const char* name : decoders) {
    const Text text(name);
    const std::vector<int32_t> ids = text.row("input_ids", 34);
    const Tensor& logits = text.io.at("logits");
    const int64_t width = logits.dim(2);
    double sum = 0;
    for (int64_t row = 0; row < 2; ++row)
      for (int64_t i = 0; i < 16; ++i) {
        double total = 0;
        for (int64_t c = 0; c < width; ++c)
          total += std::exp(logits.item((row * 17 + i) * width + c));
        sum += std::log(total) -
               logits.item((row * 17 + i) * width + ids[static_cast<size_t>(row * 17 + i + 1)]);
      }
    const Perplexity got = perplexity(text.graph, ids, 17, 1);
    EXPECT_EQ(got.predictions, 32);
    EXPECT_EQ(got.tokens, 34);
    EXPECT_EQ(got.windows, 2);
    EXPECT_NEAR(got.loss(), sum / 32, 1e-5) << name;
    EXPECT_DOUBLE_EQ(got.value(), std::exp(got.loss()));
    // Layer by layer it is the same, the shorter last window too.
    NetworkSpec spec;
    spec.load = test::golden_path("language/" + std::string(name));
    for (const int64_t length : {17, 9}) {
      const Perplexity whole = perplexity(text.graph, ids, length, 1),
                       layered = layered_perplexity(spec, ids, length, 1);
      EXPECT_EQ(layered.predictions, whole.predictions);
      EXPECT_EQ(layered.tokens, whole.tokens);
      EXPECT_EQ(layered.windows, whole.windows);
      EXPECT_NEAR(layered.loss(), whole.loss(), 1e-6) << name;
    }
  }
}

}  // namespace
}  // namespace mase::language_test
