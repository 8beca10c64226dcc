// SPDX-License-Identifier: Apache-2.0
#include "mase/run/language.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>

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

// A file's layers as graphs of their own, one behind the other: each takes what the one before
// gives and nothing else.
struct Segment {
  Graph graph;
  bool last = false;
};

// The part of a path up to its first number: "model.layers.3"; empty: it has none.
std::string layer_of(const std::string& path) {
  const std::vector<std::string> words = split(path, '.');
  for (size_t i = 0; i < words.size(); ++i)
    if (parse_integer(words[i]))
      return join({words.begin(), words.begin() + static_cast<std::ptrdiff_t>(i) + 1}, ".");
  return "";
}

// Nodes [begin, end) of the order; `from` is the node before them, unless they begin the graph.
Segment segment_of(const Graph& whole, const std::vector<Shape>& shapes, size_t begin, size_t end) {
  Segment segment{.graph = {}, .last = end == whole.order().size()};
  segment.graph.name = whole.name;
  std::map<NodeId, NodeId> places;
  if (begin > 0) {
    const NodeId from = whole.order()[begin - 1];
    const Shape& shape = shapes[static_cast<size_t>(from)];
    places[from] = segment.graph.add_placeholder("x", {shape.begin() + 1, shape.end()});
  }
  const auto moved = [&](auto& self, Argument& argument) -> void {
    if (argument.is_node()) {
      argument = Argument::node(places.at(argument.id()));
    } else if (auto* list = std::get_if<std::vector<Argument>>(&argument.data)) {
      for (Argument& item : *list) self(self, item);
    }
  };
  for (size_t i = begin; i < end; ++i) {
    const NodeId id = whole.order()[i];
    const Node& node = whole.node(id);
    if (node.kind == NodeKind::output) {
      segment.graph.add_output({places.at(whole.outputs().at(0))});
      return segment;
    }
    Node copy = node;
    for (Argument& argument : copy.args) moved(moved, argument);
    for (auto& [key, argument] : copy.kwargs) moved(moved, argument);
    if (node.kind == NodeKind::call_module)
      segment.graph.modules()[node.target] = *whole.module_of(node);
    if (node.kind == NodeKind::get_attr) {
      const std::string path = whole.owner_of(node.target)->first;
      segment.graph.modules()[path] = whole.modules().at(path);
    }
    places[id] = segment.graph.add_node(std::move(copy));
  }
  segment.graph.add_output({places.at(whole.order()[end - 1])});
  return segment;
}

// Cut where another layer begins and nothing but the value before it is needed behind.
std::vector<Segment> segments_of(const Graph& whole) {
  const std::vector<NodeId>& order = whole.order();
  std::map<NodeId, size_t> index;
  for (size_t i = 0; i < order.size(); ++i) index[order[i]] = i;
  std::vector<size_t> cuts = {0};
  std::string layer;
  for (size_t i = 1; i < order.size(); ++i) {
    const Node& node = whole.node(order[i]);
    if (node.kind != NodeKind::call_module || layer_of(node.target) == layer) continue;
    layer = layer_of(node.target);
    bool alone = true;
    for (size_t k = i; k < order.size() && alone; ++k)
      for (const NodeId input : whole.inputs_of(order[k]))
        alone = alone && (index.at(input) >= i || index.at(input) == i - 1);
    if (alone) cuts.push_back(i);
  }
  cuts.push_back(order.size());
  const std::vector<Shape> shapes = infer_shapes(whole, 1);
  std::vector<Segment> segments;
  for (size_t i = 0; i + 1 < cuts.size(); ++i)
    segments.push_back(segment_of(whole, shapes, cuts[i], cuts[i + 1]));
  return segments;
}

void take_weights(Graph& graph, const std::map<std::string, const Tensor*>& table,
                  const std::string& place) {
  for (auto& [path, module] : graph.modules())
    for (auto* list : {&module.parameters, &module.buffers})
      for (auto& [name, tensor] : *list) {
        const auto found = table.find(tensor_name(path, name));
        if (found == table.end() || found->second->shape() != tensor.shape())
          throw Error(place,
                      fmt::format("has no '{}' of {}", printable(tensor_name(path, name)),
                                  shape_text(tensor.shape())),
                      "the description and the tensors do not belong together");
        tensor = found->second->to(DType::f32);
      }
}

}  // namespace

Perplexity layered_perplexity(const NetworkSpec& spec, const std::vector<int32_t>& ids,
                              int64_t length, int threads, const Observer& observer) {
  if (length < 2) throw Error("--length", "a window has at least 2 tokens");
  const auto count = static_cast<int64_t>(ids.size());
  if (count < 2) throw Error("tokens", "a text has at least 2 tokens");
  const std::optional<Checkpoint> checkpoint = open_checkpoint(spec);
  if (!checkpoint || checkpoint->graph || !checkpoint->contents["model_type"].is_string())
    throw Error(spec.load, "is no folder of Hugging Face's form and no .gguf file",
                "measure other networks without --layer-by-layer");
  Perplexity result;
  const auto start = std::chrono::steady_clock::now();
  for (int64_t at = 0; at < count && count - at >= 2;) {
    const int64_t size = std::min(length, count - at), windows = (count - at) / size;
    TensorTable tensors = checkpoint->tensors;
    const Graph whole =
        make_hf_network(checkpoint->contents, tensors, {.shapes = {{size}}}, spec.load);
    const Shape logits = infer_shapes(whole, 1).at(static_cast<size_t>(whole.outputs().at(0)));
    if (logits.size() != 3 || logits[1] != size)
      throw Error(spec.load, "the network gives no logits for every token",
                  "give one that predicts the next token (...ForCausalLM)");
    check_tokens(ids, logits[2]);
    std::map<std::string, const Tensor*> table;
    for (const auto& [name, tensor] : tensors) table[name] = &tensor;
    std::vector<float> states(ids.begin() + at, ids.begin() + at + windows * size);
    std::vector<Segment> segments = segments_of(whole);
    for (size_t s = 0; s < segments.size(); ++s) {
      take_weights(segments[s].graph, table, spec.load);
      CompileOptions options;
      options.batch_size = 1;
      options.threads = threads;
      Program program = Program::compile(segments[s].graph, options);
      segments[s].graph = {};  // and its weights
      const int64_t width = static_cast<int64_t>(states.size()) / windows,
                    given = element_count(program.output_shape(0));
      std::vector<float> next(segments[s].last ? static_cast<size_t>(given)
                                               : static_cast<size_t>(given * windows));
      for (int64_t w = 0; w < windows; ++w) {
        Batch batch;
        batch.inputs.emplace_back(std::span<const float>(states).subspan(
                                      static_cast<size_t>(w * width), static_cast<size_t>(width)),
                                  width);
        batch.size = 1;
        program.forward(batch);
        program.read_output(0, next.data() + (segments[s].last ? 0 : w * given));
        if (segments[s].last) result.loss_sum += loss_of(next, ids.data() + at + w * size, size);
      }
      states = std::move(next);
      if (observer.progress)
        observer.progress(
            {"Testing", static_cast<int64_t>(s) + 1, static_cast<int64_t>(segments.size()),
             std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count()});
    }
    result.predictions += windows * (size - 1);
    result.tokens += windows * size;
    result.windows += windows;
    at += windows * size;
  }
  return result;
}

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
