// SPDX-License-Identifier: Apache-2.0
#include "mase/run/compress/compress_measure.h"

#include <algorithm>
#include <span>

#include "mase/base/text.h"
#include "mase/data/digest.h"
#include "mase/engine/program.h"
#include "mase/ir/layer_text.h"
#include "mase/ir/op.h"
#include "mase/models/hf.h"
#include "mase/run/language.h"
#include "mase/run/search/search_identity.h"
#include "mase/search/measure/figures.h"
#include "mase/train/evaluation.h"
#include "mase/train/paired.h"

namespace mase {
namespace {

constexpr int64_t most_rows_at_once = 1024;

std::string digest_of(const std::vector<int32_t>& ids) {
  return sha256_hex(std::as_bytes(std::span(ids)));
}

}  // namespace

CompressTask dataset_task(const Experiment& experiment, const CompressSpec& spec) {
  const Dataset& data = *experiment.dataset();
  const bool has_test = data.test.rows() > 0;
  const Split& whole = has_test ? data.test : data.validation;
  if (whole.rows() == 0) throw Error(data.name, "has no test rows to measure on");
  const int64_t rows = spec.rows > 0 ? std::min(spec.rows, whole.rows()) : whole.rows();
  CompressTask task;
  task.graph = experiment.graph();
  check_split(whole, data, task.graph);
  task.figure = data.classification ? "accuracy" : "loss";
  task.higher_is_better = data.classification;
  task.measured_on =
      fmt::format("{} {} rows of {} ({})", with_thousands(rows), has_test ? "test" : "validation",
                  printable(data.name), printable(data.variant));
  task.calibrated_on = fmt::format("training rows of {}", printable(data.name));
  task.identity = rows_digest(whole, rows) + " " +
                  rows_digest(data.train, std::min<int64_t>(data.train.rows(), 8192));
  task.context = experiment.pass_context("");
  task.context.print = {};
  const auto split = std::make_shared<const Split>(search::first_rows(whole, rows));
  const NetworkNotes& notes = experiment.network().notes;
  const LossFunction loss = loss_for(data, notes.loss, notes.loss_options);
  task.measure = [split, loss, classes = data.classification,
                  threads = experiment.spec().threads](const Graph& graph) {
    CompileOptions options;
    options.batch_size =
        rows_at_once(graph, std::min(most_rows_at_once, std::max<int64_t>(1, split->rows())));
    options.loss = loss;
    options.threads = threads;
    Program program = Program::compile(graph, options);
    Score score;
    const Tensor outputs = predict_rows(program, *split, &score);
    CompressFigures figures{classes ? score.accuracy() : score.loss(), score.loss()};
    if (classes) figures.correct = correct_rows(outputs, split->labels);
    return figures;
  };
  return task;
}

CompressTask text_task(const Experiment& experiment, const CompressSpec& spec,
                       const std::function<void()>& check_stop) {
  const std::string folder = experiment.spec().network.load;
  if (folder.empty())
    throw Error("--load", "is missing", "name the folder of a network: --load FOLDER");
  hf_config(experiment.graph());  // or an error
  const auto held = std::make_shared<const std::vector<int32_t>>(text_tokens(folder, spec.text));
  const std::vector<int32_t> seen = text_tokens(folder, spec.calibration_text);
  const int64_t length = spec.length,
                windows = static_cast<int64_t>(seen.size()) / std::max<int64_t>(1, length);
  if (windows < 2)
    throw Error("--calibration",
                fmt::format("{} tokens are not two windows of {}", seen.size(), length),
                "give a longer text, or a smaller --length");
  CompressTask task;
  task.graph = resized_hf_network(experiment.graph(), {.shapes = {{length}}});
  task.figure = "perplexity";
  task.higher_is_better = false;
  task.measured_on =
      fmt::format("{} tokens of {} in windows of {}",
                  with_thousands(static_cast<int64_t>(held->size())), printable(spec.text), length);
  task.calibrated_on =
      fmt::format("windows of {} tokens of {}", length, printable(spec.calibration_text));
  task.identity = digest_of(*held) + " " + digest_of(seen);
  Tensor samples({windows, length});
  std::copy_n(seen.begin(), windows * length, samples.mutable_data<float>());
  task.context.samples = std::move(samples);
  task.context.seed = experiment.spec().seed;
  task.context.threads = experiment.spec().threads;
  task.context.base_dir = experiment.spec().passes.base_dir;
  task.measure = [held, length, threads = experiment.spec().threads,
                  check_stop](const Graph& graph) {
    Observer observer;
    observer.progress = [&](const Progress&) { check_stop(); };
    const Perplexity result = perplexity(graph, *held, length, threads, observer);
    return CompressFigures{result.value(), result.loss()};
  };
  return task;
}

WeightSizes weight_sizes(const Graph& graph, const Graph& original,
                         const std::set<std::string>& layers) {
  WeightSizes sizes;
  for (const auto& [path, module] : graph.modules()) {
    const OpRecord* op = Registry<OpRecord>::instance().find(module.op);
    const bool multiplies = op && op->multiplies_weights();
    const std::vector<std::string> weights =
        multiplies ? operand_rules(*op).parts_of("weight") : std::vector<std::string>{};
    const bool added = !original.modules().count(path);
    for (const auto& [name, tensor] : module.parameters) {
      const Quantizer* quantizer = module.quantization.find(name);
      const auto all = static_cast<double>(tensor.numel());
      double kept = all, bits = quantizer ? quantizer->bits_per_value(tensor.shape()) : 32;
      double masks = 0;
      for (const auto& [masked, mask] : module.masks) {
        if (masked != name) continue;
        const float* keeps = mask.data<float>();
        kept = static_cast<double>(mask.numel() - std::count(keeps, keeps + mask.numel(), 0.0f));
        masks = all;  // a bit for each
      }
      const double total = kept * bits + masks;
      sizes.all_bits += total;
      const bool is_weight = std::count(weights.begin(), weights.end(), name) > 0;
      if (!is_weight || !(layers.count(path) || added)) continue;
      sizes.weight_bits += total;
      if (!added) sizes.weights += tensor.numel();
    }
  }
  return sizes;
}

}  // namespace mase
