// SPDX-License-Identifier: Apache-2.0
// Texts token by token: one program takes the prompt, another one token at a time; keys and values
// go from the outputs of each into what the next one takes.
#include <algorithm>
#include <cfloat>
#include <cmath>
#include <numeric>

#include "mase/base/random.h"
#include "mase/engine/program.h"
#include "mase/models/hf.h"
#include "mase/run/language.h"

namespace mase {
namespace {

// A program for `tokens` new positions behind up to `cached` earlier ones.
struct NextToken {
  Graph graph;
  Program program;
  int64_t tokens, cached, window;
  std::vector<std::vector<float>> inputs;  // of each placeholder
  std::vector<int64_t> widths;

  static Program compiled(const Graph& graph, int threads) {
    CompileOptions options;
    options.batch_size = 1;
    options.threads = threads;
    return Program::compile(graph, options);
  }

  NextToken(const Graph& whole, int64_t new_tokens, int64_t earlier, int threads)
      : graph(resized_hf_network(whole, {.shapes = {{new_tokens}}, .cached = earlier})),
        program(compiled(graph, threads)),
        tokens(new_tokens),
        cached(earlier) {
    const Value& given = hf_config(graph)["sliding_window"];
    window = given.is_int() ? given.as_int() : 0;
    for (const NodeId id : graph.placeholders()) {
      widths.push_back(element_count(graph.node(id).sample_shape));
      inputs.emplace_back(static_cast<size_t>(widths.back()), 0.0f);
    }
  }

  // The logits of the last of these tokens, the first of which stands at `position`.
  std::vector<float> run(const int32_t* ids, int64_t position) {
    size_t at = 0;
    for (const NodeId id : graph.placeholders()) {
      const std::string& name = graph.node(id).name;
      std::vector<float>& values = inputs[at++];
      if (name == "input_ids")
        for (int64_t i = 0; i < tokens; ++i)
          values[static_cast<size_t>(i)] = static_cast<float>(ids[i]);
      else if (name == "position_ids")
        for (int64_t i = 0; i < tokens; ++i)
          values[static_cast<size_t>(i)] = static_cast<float>(position + i);
      else if (name == "attention_bias" || name == "window_bias")
        fill_bias(values, position, name == "window_bias" ? window : 0);
    }
    Batch batch;
    for (size_t i = 0; i < inputs.size(); ++i)
      batch.inputs.emplace_back(std::span<const float>(inputs[i]), widths[i]);
    batch.size = 1;
    program.forward(batch);
    const Shape shape = program.output_shape(0);
    std::vector<float> logits(static_cast<size_t>(element_count(shape)));
    program.read_output(0, logits.data());
    return {logits.end() - shape.back(), logits.end()};
  }

  // What each new token must not see: later ones, empty places, and what lies before its window.
  void fill_bias(std::vector<float>& values, int64_t position, int64_t most) const {
    for (int64_t i = 0; i < tokens; ++i)
      for (int64_t j = 0; j < cached + tokens; ++j) {
        const int64_t key = j < cached ? j : position + j - cached, own = position + i;
        const bool there = j < cached ? j < position : key <= own;
        const bool seen = there && (most == 0 || key > own - most);
        values[static_cast<size_t>(i * (cached + tokens) + j)] = seen ? 0.0f : -FLT_MAX;
      }
  }

  // Keys and values of the new positions into the places of `to`.
  void keep(NextToken& to, int64_t position) {
    const size_t first = to.inputs.size() - (graph.outputs().size() - 1);
    for (size_t i = 1; i < graph.outputs().size(); ++i) {
      const Shape shape = program.output_shape(static_cast<int>(i));  // [1, heads, tokens, width]
      std::vector<float> values(static_cast<size_t>(element_count(shape)));
      program.read_output(static_cast<int>(i), values.data());
      for (int64_t h = 0; h < shape[1]; ++h)
        std::copy_n(values.data() + h * tokens * shape[3], tokens * shape[3],
                    to.inputs[first + i - 1].data() + (h * to.cached + position) * shape[3]);
    }
  }
};

int32_t chosen(const std::vector<float>& logits, const GenerateSpec& spec, Random& random) {
  if (spec.temperature <= 0)
    return static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
  std::vector<int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return logits[static_cast<size_t>(a)] > logits[static_cast<size_t>(b)];
  });
  if (spec.top_k > 0 && spec.top_k < static_cast<int64_t>(order.size()))
    order.resize(static_cast<size_t>(spec.top_k));
  std::vector<double> shares;
  const double most = static_cast<double>(logits[static_cast<size_t>(order[0])]);
  double sum = 0;
  for (const int32_t token : order) {
    const double score = static_cast<double>(logits[static_cast<size_t>(token)]) - most;
    shares.push_back(std::exp(score / spec.temperature));
    sum += shares.back();
  }
  double kept = 0;
  size_t count = 0;
  while (count < shares.size() && (count == 0 || kept < spec.top_p * sum)) kept += shares[count++];
  double place = random.uniform() * kept;
  for (size_t i = 0; i + 1 < count; ++i)
    if ((place -= shares[i]) < 0) return order[i];
  return order[count - 1];
}

}  // namespace

std::vector<int32_t> generate(const Graph& graph, const GenerateSpec& spec,
                              const std::function<bool(int32_t token)>& each,
                              std::vector<std::vector<float>>* logits) {
  const auto prompt = static_cast<int64_t>(spec.prompt.size());
  if (prompt < 1) throw Error("--prompt", "has no tokens", "give at least one");
  if (spec.tokens < 1) return {};
  const Value& vocabulary = hf_config(graph)["vocab_size"];
  for (const int32_t id : spec.prompt)
    if (id < 0 || !vocabulary.is_int() || id >= vocabulary.as_int())
      throw Error("--prompt", fmt::format("token number {} is none of the network's", id),
                  "the tokenizer is another network's");
  // A table of positions ends somewhere; networks whose positions turn were trained up to there.
  const Value& config = hf_config(graph);
  for (const char* key : {"max_position_embeddings", "n_positions"})
    if (config[key].is_int() && prompt + spec.tokens > config[key].as_int() + 1)
      throw Error("--tokens",
                  fmt::format("{} of the prompt and {} new ones are more than the {} "
                              "positions of the network",
                              prompt, spec.tokens, config[key].as_int()),
                  "ask for fewer");
  NextToken first(graph, prompt, 1, spec.threads);
  if (first.program.output_shape(0).size() != 3)
    throw Error(graph.name, "the network gives no logits for every token",
                "give one that predicts the next token (...ForCausalLM)");
  // The empty place in front of the prompt is hidden: position 0 has nothing before it.
  std::vector<float> scores = first.run(spec.prompt.data(), 0);
  std::optional<NextToken> next;
  Random random(spec.seed, "generate");
  std::vector<int32_t> result;
  for (int64_t at = prompt;; ++at) {
    if (logits) logits->push_back(scores);
    const int32_t token = chosen(scores, spec, random);
    result.push_back(token);
    if (each && !each(token)) break;
    if (std::find(spec.ends.begin(), spec.ends.end(), token) != spec.ends.end()) break;
    if (static_cast<int64_t>(result.size()) == spec.tokens) break;
    if (!next) {
      // The last token is chosen and not given back.
      next.emplace(graph, 1, prompt + spec.tokens - 1, spec.threads);
      first.keep(*next, 0);
    }
    scores = next->run(&token, at);
    next->keep(*next, at);
  }
  return result;
}

}  // namespace mase
