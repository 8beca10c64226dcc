// SPDX-License-Identifier: Apache-2.0
// Networks that predict the next token: how well they do on a text, and texts of their own. Both
// take the graph of a Hugging Face folder (models/hf.h), quantised or not, and make it for the
// lengths they need.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "mase/run/experiment.h"

namespace mase {

struct Perplexity {
  double loss_sum = 0;      // of all predictions, natural logarithm
  int64_t predictions = 0;  // every token of a window but its first
  int64_t tokens = 0, windows = 0;
  double loss() const { return loss_sum / static_cast<double>(predictions); }
  double value() const;  // exp of the mean loss of all predictions
};

// The text in windows of `length` one behind the other, the last one as long as the rest.
Perplexity perplexity(const Graph& graph, const std::vector<int32_t>& ids, int64_t length,
                      int threads, const Observer& observer = {});

// The same one layer after the other, for all windows: what each gives is kept, and only its own
// weights are widened and in memory. As the folder or .gguf file says, without passes.
Perplexity layered_perplexity(const NetworkSpec& spec, const std::vector<int32_t>& ids,
                              int64_t length, int threads, const Observer& observer = {});

struct GenerateSpec {
  std::vector<int32_t> prompt;
  int64_t tokens = 64;     // at most so many new ones
  double temperature = 0;  // 0: always the likeliest
  int64_t top_k = 0;       // of the likeliest only; 0: all
  double top_p = 1;        // of the fewest that together have this probability
  uint64_t seed = 0;
  std::vector<int32_t> ends = {};  // tokens that end the text
  int threads = 1;
};

struct GenerateTimes {
  double prompt = 0, tokens = 0;  // seconds: until the first token, and for all others
};

// What the weights take, and those of them that are packed.
struct WeightBytes {
  int64_t values = 0, bytes = 0, packed_values = 0, packed_bytes = 0;
};
WeightBytes weight_bytes(const Graph& graph);
// Keys and values of one token: how many there are, and the bits they take in the formats that
// attention rounds them to, 32 each where it has none. The cache itself holds them as floats.
struct CacheSize {
  int64_t values = 0;
  double bits = 0;
};
CacheSize cache_of_token(const Graph& graph);

// New tokens, each given to `each` when it is chosen; false from it ends the text. Keys and values
// of earlier positions are kept. `logits`: those every token was chosen from, if wanted.
std::vector<int32_t> generate(const Graph& graph, const GenerateSpec& spec,
                              const std::function<bool(int32_t token)>& each = {},
                              std::vector<std::vector<float>>* logits = nullptr,
                              GenerateTimes* times = nullptr);

// Token numbers of a text file by the folder's tokenizer, without special ones, or of a .npy.
std::vector<int32_t> text_tokens(const std::string& folder, const std::string& path);
// The network of a spec for running text, its passes applied.
Graph language_network(ExperimentSpec spec, const Observer& observer);

}  // namespace mase
