// SPDX-License-Identifier: Apache-2.0
#include "mase/train/evaluation.h"

#include <algorithm>
#include <cmath>

#include "mase/data/token_rows.h"

#include "mase/train/task.h"

namespace mase {
namespace {

Batch batch_of(const Split& split) {
  Batch batch;
  batch.inputs = {RowTensor(split.x, split.bytes.get())};
  if (split.labels.numel() > 0) batch.target = RowTensor(split.labels, "target");
  if (split.targets.numel() > 0) batch.target = RowTensor(split.targets, "target");
  return batch;
}

int64_t rows_without_scores(const MetricInput& input) {
  int64_t count = 0;
  for (int64_t row = 0; row < input.rows; ++row) {
    const float* outputs = input.logits + row * input.outputs;
    count += input.labels ? !has_scores(outputs, input.outputs)
                          : !std::all_of(outputs, outputs + input.outputs,
                                         [](float value) { return std::isfinite(value); });
  }
  return count;
}

}  // namespace

LossFunction loss_for(const Dataset& dataset, const std::string& name, const Value& options) {
  if (has_token_labels(dataset) && options.is_dict() && !options["weight"].is_null())
    throw Error("loss.weight", "tokens have no class weights", "leave them out");
  return make_loss(!name.empty() ? name : default_task(dataset).loss, options,
                   dataset.classification, dataset.class_weights);
}

void check_split(const Split& split, const Dataset& dataset, const Graph& graph) {
  const std::vector<Shape> shapes = infer_shapes(graph, 1);
  const std::vector<NodeId> outputs = graph.outputs(), inputs = graph.placeholders();
  if (inputs.size() != 1)
    throw Error(graph.name, fmt::format("has {} inputs; data sets have one", inputs.size()));
  Shape sample = split.x.shape();
  if (!sample.empty()) sample.erase(sample.begin());
  const Shape& wanted = graph.node(inputs[0]).sample_shape;
  if (element_count(sample) != element_count(wanted))
    throw Error(dataset.name,
                fmt::format("samples have shape {}, the network {} takes {}", shape_text(sample),
                            graph.name, shape_text(wanted)),
                "choose a network for this data set");
  if (outputs.empty()) throw Error(graph.name, "has no output");
  const Shape& result = shapes.at(static_cast<size_t>(outputs[0]));
  if (has_token_labels(dataset)) {
    if (result.size() != 3 || split.labels.shape() != Shape{split.rows(), result[1]})
      throw Error(dataset.name,
                  fmt::format("each token has a class to be told, the network {} gives {}",
                              graph.name, shape_text(result)),
                  "choose one that gives scores of all tokens at each place: ...ForCausalLM, "
                  "...ForMaskedLM");
    for (const int32_t label : split.labels.values<int32_t>())
      if (label >= result[2])
        throw Error(dataset.name,
                    fmt::format("token number {} of the {} that the network {} knows", label,
                                result[2], graph.name),
                    "the tokenizer is another network's");
    return;
  }
  const int64_t width = element_count(result);
  if (split.labels.numel() > 0) {
    for (const int32_t label : split.labels.values<int32_t>())
      if (label < 0 || label >= width)
        throw Error(
            dataset.name,
            fmt::format("has class {}, the network {} gives {} outputs", label, graph.name, width),
            "choose a network with an output for each class");
  } else if (split.targets.numel() > 0 && split.targets.numel() != split.rows() * width) {
    throw Error(
        dataset.name,
        fmt::format("has {} targets a row, the network {} gives {} outputs",
                    split.targets.numel() / std::max<int64_t>(1, split.rows()), graph.name, width));
  }
}

void stream_batches(Program& program, const Split& split, int64_t first, int64_t last,
                    MetricStream& stream, std::vector<float>& outputs) {
  Batch batch = batch_of(split);
  const int64_t largest = program.options().batch_size;
  const bool tokens = split.labels.shape().size() == 2;
  MetricInput input;
  input.outputs = element_count(program.output_shape(0)) / largest;
  if (stream.needs_outputs()) outputs.resize(static_cast<size_t>(largest * input.outputs));
  for (int64_t b = first; b < last; ++b) {
    batch.first_row = b * largest;
    batch.size = std::min(largest, split.rows() - batch.first_row);
    const StepResult result = program.forward(batch);
    if (stream.needs_outputs()) {
      program.read_output(0, outputs.data());
      input.logits = outputs.data();
    }
    input.rows = tokens ? std::llround(result.weight) : batch.size;  // those that count
    input.loss = result.loss;
    input.loss_weight = result.weight;
    input.correct = result.correct;
    if (split.labels.numel() > 0) input.labels = split.labels.data<int32_t>() + batch.first_row;
    if (split.targets.numel() > 0)
      input.targets = split.targets.data<float>() + batch.first_row * input.outputs;
    stream.add(b, input);
  }
}

Score score_rows(Program& program, const Split& split, int64_t first, int64_t last) {
  Score score;
  Batch batch = batch_of(split);
  const int64_t largest = program.options().batch_size;
  for (batch.first_row = first; batch.first_row < last; batch.first_row += largest) {
    batch.size = std::min(largest, last - batch.first_row);
    const StepResult result = program.forward(batch);
    // Where each token has a class, those that count are what hits are a share of.
    score.add(result, split.labels.shape().size() == 2 ? std::llround(result.weight) : batch.size);
  }
  return score;
}

Tensor predict_rows(Program& program, const Split& split, Score* score,
                    const ProgressFunction& progress) {
  Shape shape = program.output_shape(0);
  const int64_t rows = split.rows();
  shape.at(0) = 1;
  const int64_t width = element_count(shape);
  shape[0] = rows;
  Tensor logits(shape);
  float* out = logits.mutable_data<float>();
  const int64_t largest = program.options().batch_size;
  const int64_t batches = (rows + largest - 1) / largest;
  Batch batch = batch_of(split);
  for (int64_t b = 0; b < batches; ++b) {
    batch.first_row = b * largest;
    batch.size = std::min(largest, rows - batch.first_row);
    const StepResult result = program.forward(batch);
    program.read_output(0, out + batch.first_row * width);
    if (score) score->add(result, batch.size);
    if (progress) progress(b + 1, batches);
  }
  return logits;
}

Value evaluation_record(const std::string& split_name, const Split& split, const Tensor& logits,
                        const Score& score, const Dataset& dataset) {
  Dict record{{"split", split_name}, {"rows", split.rows()}};
  if (has_token_labels(dataset)) {
    record.set("tokens", score.rows);
    record.set("loss", score.loss());
    record.set("accuracy", score.accuracy());
    record.set("perplexity", std::exp(score.loss()));
    return record;
  }
  const bool classes = split.labels.numel() > 0;
  if (split.rows() == 0 || (!classes && split.targets.numel() == 0)) {
    record.set("loss", score.loss());
    return record;
  }
  if (classes) record.set("classes", Value::of(dataset.class_names));
  MetricInput input;
  input.logits = logits.data<float>();
  if (classes) input.labels = split.labels.data<int32_t>();
  if (!classes) input.targets = split.targets.data<float>();
  input.rows = split.rows();
  input.outputs = logits.numel() / split.rows();
  input.loss = score.loss();
  input.loss_weight = score.loss_weight;
  if (const int64_t without = rows_without_scores(input); without > 0)
    record.set("rows_without_scores", without);
  for (const MetricRecord* metric : Registry<MetricRecord>::instance().all())
    // What an option decides (one k of top-k) is a figure of those who choose it.
    if ((classes ? metric->for_classes : metric->for_numbers) && !metric->curve_of)
      record.set(metric->name, compute_metric(metric->name, input));
  // Curves carry the names of their classes where the data set has them.
  if (Value* curves = record.find("roc"); curves && curves->is_list())
    for (size_t c = 0; c < curves->list().size() && c < dataset.class_names.size(); ++c)
      curves->list()[c]["class"] = dataset.class_names[c];
  return record;
}

}  // namespace mase
