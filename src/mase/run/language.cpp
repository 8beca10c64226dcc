// SPDX-License-Identifier: Apache-2.0
#include "mase/run/language.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "mase/base/file.h"
#include "mase/base/text.h"
#include "mase/engine/program.h"
#include "mase/io/numpy/numpy_tensors.h"
#include "mase/models/hf.h"
#include "mase/passes/pass.h"
#include "mase/text/tokenizer.h"

namespace mase {
namespace {

void check_tokens(const std::vector<int32_t>& ids, int64_t vocabulary) {
  for (const int32_t id : ids)
    if (id < 0 || id >= vocabulary)
      throw Error("tokens", fmt::format("token number {} of {}", id, vocabulary),
                  "the tokenizer is another network's");
}

// Of `count` positions of logits [count, vocabulary], that of each next token.
double loss_of(const std::vector<float>& logits, const int32_t* ids, int64_t count) {
  const auto vocabulary = static_cast<int64_t>(logits.size()) / count;
  double sum = 0;
  for (int64_t i = 0; i + 1 < count; ++i) {
    const float* row = logits.data() + i * vocabulary;
    const double most = static_cast<double>(*std::max_element(row, row + vocabulary));
    double total = 0;
    for (int64_t c = 0; c < vocabulary; ++c) total += std::exp(static_cast<double>(row[c]) - most);
    sum += most + std::log(total) - static_cast<double>(row[ids[i + 1]]);
  }
  return sum;
}

}  // namespace

double Perplexity::value() const { return std::exp(loss()); }

Perplexity perplexity(const Graph& graph, const std::vector<int32_t>& ids, int64_t length,
                      int threads, const Observer& observer) {
  if (length < 2) throw Error("--length", "a window has at least 2 tokens");
  const auto count = static_cast<int64_t>(ids.size());
  if (count < 2) throw Error("tokens", "a text has at least 2 tokens");
  Perplexity result;
  const auto start = std::chrono::steady_clock::now();
  const int64_t windows = (count + length - 1) / length;
  std::optional<Program> program;
  int64_t compiled = 0;
  for (int64_t at = 0; at < count; at += length) {
    const int64_t size = std::min(length, count - at);
    if (size < 2) break;  // a single token at the end predicts nothing
    if (size != compiled) {
      const Graph own = resized_hf_network(graph, {.shapes = {{size}}});
      CompileOptions options;
      options.batch_size = 1;
      options.threads = threads;
      program.emplace(Program::compile(own, options));
      compiled = size;
      const Shape shape = program->output_shape(0);
      if (shape.size() != 3 || shape[1] != size)
        throw Error(graph.name, "the network gives no logits for every token",
                    "give one that predicts the next token (...ForCausalLM)");
      check_tokens(ids, shape[2]);
    }
    std::vector<float> row(ids.begin() + at, ids.begin() + at + size);
    Batch batch;
    batch.inputs.emplace_back(std::span<const float>(row), size);
    batch.size = 1;
    program->forward(batch);
    std::vector<float> logits(static_cast<size_t>(element_count(program->output_shape(0))));
    program->read_output(0, logits.data());
    result.loss_sum += loss_of(logits, ids.data() + at, size);
    result.predictions += size - 1;
    result.tokens += size;
    ++result.windows;
    if (observer.progress)
      observer.progress(
          {"Testing", result.windows, windows,
           std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count()});
  }
  return result;
}

std::vector<int32_t> text_tokens(const std::string& folder, const std::string& path) {
  if (!ends_with(lower_case(path), ".npy"))
    return Tokenizer::load(folder).ids(read_text_file(path), false);
  const TensorTable tensors = read_numpy_tensors(path);
  if (tensors.size() != 1) throw Error(path, "holds no array of token numbers");
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < tensors[0].second.numel(); ++i) {
    const double number = tensors[0].second.item(i);
    if (!(number >= 0 && number < double{1 << 24}) || number != std::floor(number))
      throw Error(path, fmt::format("{} is no token number", number));
    ids.push_back(static_cast<int32_t>(number));
  }
  return ids;
}

Graph language_network(ExperimentSpec spec, const Observer& observer) {
  spec.data.name.clear();
  Experiment experiment(std::move(spec), observer);
  experiment.prepare();
  experiment.apply_passes();
  hf_config(experiment.graph());  // or an error
  Graph graph = experiment.graph();
  PassContext context;
  run_pass(graph, "pack_weights", Dict{}, context);
  return graph;
}

}  // namespace mase
