// SPDX-License-Identifier: Apache-2.0
// Figures on a split, and outputs for rows of a file.
#include <algorithm>
#include <chrono>
#include <limits>

#include "mase/base/text.h"
#include "mase/data/token_rows.h"
#include "mase/ir/value_type.h"
#include "mase/run/experiment.h"
#include "mase/run/input_rows.h"
#include "mase/run/sentences.h"
#include "mase/train/task.h"

namespace mase {
namespace {

int64_t row_width(const Tensor& rows) {
  return rows.numel() / std::max<int64_t>(1, rows.shape().at(0));
}

// Outputs with rows of NaN in the places of those that were left out.
Tensor with_gaps(const Tensor& outputs, const std::vector<int64_t>& left_out) {
  Shape shape = outputs.shape();
  const int64_t width = row_width(outputs);
  shape[0] += static_cast<int64_t>(left_out.size());
  Tensor all(shape);
  const float* from = outputs.data<float>();
  float* to = all.mutable_data<float>();
  size_t next = 0;
  for (int64_t row = 0; row < shape[0]; ++row, to += width) {
    if (next < left_out.size() && left_out[next] == row) {
      ++next;
      std::fill_n(to, width, std::numeric_limits<float>::quiet_NaN());
    } else {
      std::copy_n(from, width, to);
      from += width;
    }
  }
  return all;
}

bool takes_whole_batch(const Graph& graph) { return graph.meta.contains("whole_batch"); }

// Otherwise (a mean over the batch, features in front of it) rows cannot be computed in parts.
bool gives_a_row_for_each_sample(const Graph& graph) {
  const std::vector<std::vector<ValueType>> types = infer_types(graph);
  const std::vector<ValueType>& type = types[static_cast<size_t>(graph.outputs().at(0))];
  return !type.empty() && type[0].is_sample_by_sample();
}

// As PyTorch prints a float32 figure: all the digits of the nearest double.
double single(double value) { return static_cast<double>(static_cast<float>(value)); }

// A batch larger than the data would only take memory.
int64_t batch_for(int64_t wanted, int64_t rows) {
  return std::min(wanted, std::max<int64_t>(1, rows));
}

}  // namespace

std::vector<std::pair<std::string, double>> named_figures(const Evaluation& evaluation,
                                                          bool classification) {
  const std::string& split = evaluation.split;
  const std::string prefix = split == "validation" ? "val" : split;
  const Value& perplexity = evaluation.record["perplexity"];
  std::vector<std::pair<std::string, double>> figures;
  if (classification)
    figures.emplace_back(prefix + "_acc_epoch", single(evaluation.score.accuracy()));
  figures.emplace_back(prefix + "_loss_epoch", single(evaluation.score.loss()));
  if (perplexity.is_number())
    figures.emplace_back(prefix + "_perplexity_epoch", single(perplexity.as_double()));
  if (classification) return figures;
  for (const MetricRecord* metric : Registry<MetricRecord>::instance().all()) {
    const Value& value = evaluation.record[metric->name];
    if (metric->add && metric->for_numbers && metric->name != "loss" && value.is_number())
      figures.emplace_back(
          fmt::format("{}_{}_epoch", prefix, metric->curve.empty() ? metric->name : metric->curve),
          single(value.as_double()));
  }
  return figures;
}

Evaluation Experiment::evaluate(const std::string& split) {
  if (!network_.loaded) observer_.warning("no --load: the network has its initial random weights");
  apply_passes_aloud();
  const Split rows = this->split(split);
  check_split(rows, data(), network_.graph);
  CompileOptions options;
  options.batch_size = batch_for(spec_.batch_size, rows.rows());
  const NetworkNotes& notes = network_.notes;
  if (!notes.loss.empty())
    observer_.info(fmt::format("Loss: {}, with which it was trained", printable(notes.loss)));
  options.loss = loss_for(data(), notes.loss, notes.loss_options);
  options.threads = spec_.threads;
  Program program = Program::compile(network_.graph, options);
  return evaluate_program(program, split);
}

Evaluation Experiment::evaluate_program(Program& program, const std::string& name) const {
  const Split rows = split(name);
  Evaluation result;
  result.split = name;
  const auto start = std::chrono::steady_clock::now();
  const auto elapsed = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  const auto progress = [&](int64_t batch, int64_t batches) {
    if (observer_.progress) observer_.progress({"Testing", batch, batches, elapsed()});
  };
  if (has_token_labels(data())) {  // the scores of all tokens at all places would fill the memory
    const int64_t largest = program.options().batch_size;
    const int64_t batches = (rows.rows() + largest - 1) / largest;
    for (int64_t b = 0; b < batches; ++b) {
      const Score part =
          score_rows(program, rows, b * largest, std::min(rows.rows(), (b + 1) * largest));
      result.score.loss_sum += part.loss_sum;
      result.score.loss_weight += part.loss_weight;
      result.score.correct += part.correct;
      result.score.rows += part.rows;
      progress(b + 1, batches);
    }
  } else {
    result.outputs = predict_rows(program, rows, &result.score, progress);
  }
  result.seconds = elapsed();
  result.record = evaluation_record(name, rows, result.outputs, result.score, data());
  const std::string& own_loss = network_.notes.loss;
  result.record["loss_name"] = own_loss.empty() ? default_task(data()).loss : own_loss;
  if (const Value& without = result.record["rows_without_scores"]; without.is_int())
    observer_.warning(fmt::format(
        "{} of {} {} rows have NaN or infinite outputs: they are classified as nothing and count "
        "as wrong; what needs their scores (loss, areas under curves, errors) cannot be given",
        without.as_int(), rows.rows(), name));
  return result;
}

Prediction Experiment::predict(const PredictSpec& spec) {
  if (!network_.loaded) observer_.warning("no --load: the network has its initial random weights");
  if (spec.tensors.empty() && are_sentences_for_folder(spec_.network.load, spec.inputs))
    return predict_sentences(spec_, spec, observer_);
  apply_passes_aloud();
  const Graph& graph = network_.graph;
  const size_t wanted = graph.placeholders().size();
  if (!spec.tensors.empty()) return {run(graph, spec.tensors, spec_.threads)};
  // Of one input several files are rows one after another.
  if (wanted == 1 ? spec.inputs.empty() : spec.inputs.size() != wanted)
    throw Error("--input",
                fmt::format("the network {} takes {} inputs, {} {} given", printable(network_.name),
                            wanted, spec.inputs.size(), spec.inputs.size() == 1 ? "is" : "are"),
                wanted == 1 ? "name a file" : "name a file for each, in the graph's order");
  InputOptions reading{.tensor = spec.tensor,
                       .vocabulary = spec.vocabulary,
                       .preprocess = spec.preprocess,
                       .data = spec_.data.options};
  reading.data.notify = [this](const std::string& line) { observer_.warning(line); };
  if (wanted > 1 || graph.outputs().size() > 1 || takes_whole_batch(graph) ||
      !gives_a_row_for_each_sample(graph)) {
    Prediction result;
    const std::vector<Tensor> inputs =
        input_tensors(spec.inputs, network_, takes_whole_batch(graph), reading, result.files);
    result.outputs = run(graph, inputs, spec_.threads);
    if (takes_whole_batch(graph) && inputs[0].dim(0) == 1)
      for (Tensor& output : result.outputs)
        output = output.reshaped({output.shape().begin() + 1, output.shape().end()});
    const auto named = static_cast<int64_t>(result.files.size());
    if (result.outputs[0].shape().empty() || result.outputs[0].dim(0) != named)
      result.files.clear();  // they are no rows of the outputs
    return result;
  }
  InputRows input = input_rows(spec.inputs, network_, reading);
  Split rows;
  rows.x = std::move(input.x);
  CompileOptions options;
  options.batch_size = batch_for(spec_.batch_size, rows.rows());
  options.threads = spec_.threads;
  Program program = Program::compile(network_.graph, options);
  const Tensor outputs = predict_rows(program, rows);
  if (spec.keep_places && !input.left_out.empty())
    return {{with_gaps(outputs, input.left_out)}, std::move(input.files)};
  for (size_t i = input.left_out.size(); i-- > 0 && !input.files.empty();)
    input.files.erase(input.files.begin() + static_cast<std::ptrdiff_t>(input.left_out[i]));
  return {{outputs}, std::move(input.files)};
}

}  // namespace mase
