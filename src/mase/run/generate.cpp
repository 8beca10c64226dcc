// SPDX-License-Identifier: Apache-2.0
// Texts token by token: one program takes the prompt, another one token at a time; keys and values
// lie in buffers of the latter, which each token adds its own to.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>

#include "mase/base/random.h"
#include "mase/engine/program.h"
#include "mase/formats/format.h"
#include "mase/ir/op.h"
#include "mase/models/hf.h"
#include "mase/run/language.h"

namespace mase {
namespace {

CompileOptions options_for(int threads) {
  CompileOptions options;
  options.batch_size = 1;
  options.threads = threads;
  options.one_position = true;
  return options;
}

// Runs a network on the token numbers of a row, beside which it may take where they stand.
void run_tokens(Program& program, const Graph& graph, std::span<const int32_t> ids,
                int64_t position) {
  std::vector<float> numbers(ids.begin(), ids.end()), places(ids.size());
  std::iota(places.begin(), places.end(), static_cast<float>(position));
  Batch batch;
  for (const NodeId id : graph.placeholders()) {
    const bool tokens = graph.node(id).name == "input_ids";
    batch.inputs.emplace_back(std::span<const float>(tokens ? numbers : places),
                              static_cast<int64_t>(ids.size()));
  }
  batch.size = 1;
  program.forward(batch);
}

// Goes on from a prompt.
class Continuation {
 public:
  // `room`: positions of the whole text.
  Continuation(const Graph& whole, const std::vector<int32_t>& prompt, int64_t room, int threads)
      : graph_(resized_hf_network(whole, {.shapes = {{1}}, .cached = room})),
        program_(Program::compile(graph_, options_for(threads))) {
    const auto length = static_cast<int64_t>(prompt.size());
    const Graph first = resized_hf_network(whole, {.shapes = {{length}}, .keeps = true});
    Program program = Program::compile(first, options_for(threads));
    const Shape shape = program.output_shape(0);
    const size_t outputs = first.outputs().size();
    if (shape.size() != 3 || shape[1] != 1 || outputs < 3 || outputs % 2 != 1)
      throw Error(whole.name, "the network gives no logits for every token",
                  "give one that predicts the next token (...ForCausalLM)");
    run_tokens(program, first, prompt, 0);
    logits_.resize(static_cast<size_t>(shape.back()));
    program.read_output(0, logits_.data());
    for (size_t i = 1; i < outputs; ++i) keep(program, static_cast<int>(i), room);
  }

  void run(int32_t token, int64_t position) {
    run_tokens(program_, graph_, std::span(&token, 1), position);
    program_.read_output(0, logits_.data());
  }
  const std::vector<float>& logits() const { return logits_; }

 private:
  // Keys or values of the prompt, [1, heads, tokens, width], into the cache.
  void keep(const Program& program, int output, int64_t room) {
    const Shape shape = program.output_shape(output);
    const bool keys = output % 2 == 1;
    std::vector<float> values(static_cast<size_t>(element_count(shape)));
    program.read_output(output, values.data());
    const std::span<float> cache = program_.buffer(cache_name(keys, (output - 1) / 2));
    const int64_t heads = shape[1], tokens = shape[2], width = shape[3];
    for (int64_t h = 0; h < heads; ++h)
      for (int64_t t = 0; t < tokens; ++t)
        for (int64_t e = 0; e < width; ++e) {
          const int64_t place = keys ? (h * width + e) * room + t : (h * room + t) * width + e;
          cache[static_cast<size_t>(place)] =
              values[static_cast<size_t>((h * tokens + t) * width + e)];
        }
  }

  Graph graph_;
  Program program_;
  std::vector<float> logits_;
};

int32_t likeliest(const std::vector<float>& logits) {
  return static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

// The likeliest first, as many as are asked for.
int32_t chosen(const std::vector<float>& logits, const GenerateSpec& spec, Random& random) {
  if (spec.temperature <= 0) return likeliest(logits);
  const auto at = [&](int32_t token) { return logits[static_cast<size_t>(token)]; };
  const auto behind = [&](int32_t a, int32_t b) { return at(a) != at(b) ? at(a) < at(b) : a > b; };
  const double most = static_cast<double>(at(likeliest(logits)));
  const auto share = [&](int32_t token) {
    return std::exp((static_cast<double>(at(token)) - most) / spec.temperature);
  };
  // A heap gives them in their order: no more of them are sorted than are looked at.
  std::vector<int32_t> heap(logits.size()), order;
  std::iota(heap.begin(), heap.end(), 0);
  std::make_heap(heap.begin(), heap.end(), behind);
  const auto next = [&] {
    std::pop_heap(heap.begin(), heap.end(), behind);
    order.push_back(heap.back());
    heap.pop_back();
    return share(order.back());
  };
  double sum = 0;
  std::vector<double> shares;
  if (spec.top_k > 0) {
    while (!heap.empty() && static_cast<int64_t>(order.size()) < spec.top_k) {
      shares.push_back(next());
      sum += shares.back();
    }
    heap.clear();
  } else {
    for (const int32_t token : heap) sum += share(token);
  }
  const double drawn = random.uniform();
  size_t count = 0;
  const auto share_at = [&](size_t i) -> std::optional<double> {
    if (i == shares.size() && heap.empty()) return {};
    if (i == shares.size()) shares.push_back(next());
    return shares[i];
  };
  if (spec.top_p >= 1) {  // as far as the draw goes
    double place = drawn * sum;
    while (const auto one = share_at(count))
      if (++count; (place -= *one) < 0) break;
    return order[count - 1];
  }
  double kept = 0;
  while (count == 0 || kept < spec.top_p * sum) {
    const auto one = share_at(count);
    if (!one) break;
    kept += *one;
    ++count;
  }
  double place = drawn * kept;
  for (size_t i = 0; i + 1 < count; ++i)
    if ((place -= shares[i]) < 0) return order[i];
  return order[count - 1];
}

}  // namespace

WeightBytes weight_bytes(const Graph& graph) {
  WeightBytes sum;
  for (const auto& [name, tensor] : state_dict(graph)) {
    sum.values += tensor.numel();
    sum.bytes += static_cast<int64_t>(tensor.stored_bytes());
    if (!tensor.packed()) continue;
    sum.packed_values += tensor.numel();
    sum.packed_bytes += static_cast<int64_t>(tensor.stored_bytes());
  }
  return sum;
}

CacheSize cache_of_token(const Graph& graph) {
  const Graph one = resized_hf_network(graph, {.shapes = {{1}}, .cached = 1});
  const std::vector<Shape> shapes = infer_shapes(one, 1);
  CacheSize size;
  for (const NodeId id : one.order()) {
    const Node& node = one.node(id);
    if (node.kind != NodeKind::call_function || node.target != "scaled_dot_product_attention")
      continue;
    const Quantization& formats = one.quantization_of(node);
    const std::vector<NodeId> inputs = one.inputs_of(id);
    for (const auto& [place, operand] : {std::pair(1, "key"), {2, "value"}}) {
      const Shape& shape = shapes[static_cast<size_t>(inputs.at(static_cast<size_t>(place)))];
      const Quantizer* format = formats.find(operand);
      if (!format) format = formats.find("data_in");
      size.values += element_count(shape);
      size.bits += static_cast<double>(element_count(shape)) *
                   (format ? format->bits_per_value(shape) : 32.0);
    }
  }
  return size;
}

std::vector<int32_t> generate(const Graph& graph, const GenerateSpec& spec,
                              const std::function<bool(int32_t token)>& each,
                              std::vector<std::vector<float>>* logits, GenerateTimes* times) {
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
  const auto seconds = [start = std::chrono::steady_clock::now()] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  // The last token is chosen and not given back.
  Continuation decoder(graph, spec.prompt, prompt + spec.tokens - 1, spec.threads);
  if (times) times->prompt = seconds();
  Random random(spec.seed, "generate");
  std::vector<int32_t> result;
  for (int64_t at = prompt;; ++at) {
    if (logits) logits->push_back(decoder.logits());
    const int32_t token = chosen(decoder.logits(), spec, random);
    result.push_back(token);
    if (each && !each(token)) break;
    if (std::find(spec.ends.begin(), spec.ends.end(), token) != spec.ends.end()) break;
    if (static_cast<int64_t>(result.size()) == spec.tokens) break;
    decoder.run(token, at);
  }
  if (times) times->tokens = seconds() - times->prompt;
  return result;
}

}  // namespace mase
