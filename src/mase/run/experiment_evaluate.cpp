// SPDX-License-Identifier: Apache-2.0
// Figures on a split, and outputs for rows of a file.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <limits>

#include "mase/base/text.h"
#include "mase/data/pictures.h"
#include "mase/data/prepare.h"
#include "mase/data/table.h"
#include "mase/io/numpy_tensors.h"
#include "mase/io/table_source.h"
#include "mase/ir/value_type.h"
#include "mase/run/experiment.h"

namespace mase {
namespace {

int64_t row_width(const Tensor& rows) {
  return rows.numel() / std::max<int64_t>(1, rows.shape().at(0));
}

Tensor rows_of_safetensors(const std::string& path, const std::string& wanted) {
  const TensorTable table = load_safetensors(path);
  std::vector<std::string> names;
  for (const auto& [name, tensor] : table) {
    names.push_back(printable(name));
    if (name == wanted || (wanted.empty() && (name == "x" || table.size() == 1))) {
      if (tensor.shape().empty())
        throw Error(path, fmt::format("'{}' is a single number", printable(name)));
      return tensor.to(DType::f32);
    }
  }
  throw Error(path, wanted.empty() ? "holds several tensors" : fmt::format("no '{}'", wanted),
              "choose one with --tensor: " + join(names, ", "));
}

// Whether a table without names (its reader calls columns column_1, column_2, ...) has just the
// network's features, which go by other names: then their order says which is which.
bool is_nameless(const std::string& path, const Preprocessing& preprocessing) {
  const std::unique_ptr<TableSource> source = open_table(path);
  const std::vector<TableColumn>& columns = source->columns();
  if (columns.size() != preprocessing.feature_names.size()) return false;
  for (size_t i = 0; i < columns.size(); ++i)
    if (columns[i].name != fmt::format("column_{}", i + 1) ||
        columns[i].name == preprocessing.feature_names[i])
      return false;
  return true;
}

// What a .npy holds, if it is numbers.
std::optional<Tensor> array_of(const std::string& path) {
  if (lower_case(std::filesystem::path(path).extension().string()) != ".npy" ||
      !looks_like_npy(path))
    return {};
  const TensorTable tensors = read_numpy_tensors(path);
  if (tensors.size() != 1 || tensors[0].second.numel() == 0) return {};
  return tensors[0].second;
}

// Columns in file order, for arrays, which have no names.
Tensor rows_of_array(const std::string& path) {
  if (const auto array = array_of(path)) {
    const int64_t rows = array->shape().empty() ? 1 : array->shape()[0];
    return array->to(DType::f32).reshaped({rows, array->numel() / rows});
  }
  const std::unique_ptr<TableSource> source = open_table(path);
  const int64_t columns = static_cast<int64_t>(source->columns().size());
  std::vector<float> values;
  std::vector<double> block(static_cast<size_t>(columns) * 1024);
  for (int64_t got; (got = source->read(block.data(), 1024)) > 0;)
    for (int64_t i = 0; i < got * columns; ++i)
      values.push_back(static_cast<float>(block[static_cast<size_t>(i)]));
  const int64_t rows = columns ? static_cast<int64_t>(values.size()) / columns : 0;
  return Tensor::of({rows, columns}, values);
}

// Pictures, or an array without names.
Tensor rows_of_file(const std::string& path, const Shape& sample) {
  return holds_pictures(path) ? read_pictures(path, sample) : rows_of_array(path);
}

// Rows of an array with a missing or infinite value: left out and told, or the first is an error.
Tensor clean_rows(const Tensor& x, const std::string& path, const DatasetOptions& options,
                  std::vector<int64_t>& left_out) {
  const int64_t rows = x.shape().at(0), width = row_width(x);
  const float* values = x.data<float>();
  std::vector<std::string> places;
  const auto bad = [&](int64_t row) {
    return !std::all_of(values + row * width, values + (row + 1) * width,
                        [](float value) { return std::isfinite(value); });
  };
  for (int64_t row = 0; row < rows; ++row) {
    if (!bad(row)) continue;
    if (!options.drop_bad_rows)
      throw Error(fmt::format("{}: row {}", path, row), "has a missing or infinite value",
                  "leave such rows out with --drop-bad-rows");
    constexpr size_t shown = 10;
    if (left_out.size() < shown) places.push_back(std::to_string(row));
    left_out.push_back(row);
  }
  if (left_out.empty()) return x;
  if (options.notify)
    options.notify(fmt::format("{}: rows with missing or infinite values left out: {}{}", path,
                               join(places, ", "), left_out.size() > places.size() ? ", ..." : ""));
  Shape shape = x.shape();
  shape[0] = rows - static_cast<int64_t>(left_out.size());
  if (shape[0] == 0) throw Error(path, "no usable rows are left");
  Tensor kept(shape);
  float* out = kept.mutable_data<float>();
  for (int64_t row = 0; row < rows; ++row)
    if (!bad(row)) out = std::copy_n(values + row * width, width, out);
  return kept;
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

bool is_foreign(const Network& network) { return network.graph.meta.contains("onnx"); }

Tensor input_rows(const PredictSpec& spec, const Network& network, const DatasetOptions& options,
                  std::vector<int64_t>& left_out) {
  const std::string& path = spec.inputs.at(0);
  const std::string kind = lower_case(std::filesystem::path(path).extension().string());
  const Graph& graph = network.graph;
  const Shape& sample = graph.node(graph.placeholders().at(0)).sample_shape;
  const int64_t features = element_count(sample);
  const std::optional<Preprocessing>& preprocessing = network.notes.preprocessing;
  const bool prepare = preprocessing && spec.preprocess;
  const bool named = kind == ".csv" || kind == ".arff" || kind == ".h5" || kind == ".hdf5";
  if (prepare && named && !(kind == ".csv" && is_nameless(path, *preprocessing)))
    return load_rows(path, *preprocessing, options, &left_out).x;
  Tensor x =
      kind == ".safetensors" ? rows_of_safetensors(path, spec.tensor) : rows_of_file(path, sample);
  if (x.shape().at(0) > 0 && row_width(x) != features)
    throw Error(path,
                fmt::format("rows have {} values, the network takes {}", row_width(x), features),
                row_width(x) == 1 && x.shape().at(0) == features
                    ? "a single row has the shape [1, " + std::to_string(features) + "]"
                    : "give one column for each feature and nothing else");
  // Another tool's network may mean missing and infinite values.
  if (!is_foreign(network)) x = clean_rows(x, path, options, left_out);
  if (prepare && static_cast<int64_t>(preprocessing->offset.size()) == features)
    scale_rows(x.mutable_data<float>(), x.shape()[0], *preprocessing);
  return x;
}

bool takes_whole_batch(const Graph& graph) { return graph.meta.contains("whole_batch"); }

// Otherwise (a mean over the batch, features in front of it) rows cannot be computed in parts.
bool gives_a_row_for_each_sample(const Graph& graph) {
  const std::vector<std::vector<ValueType>> types = infer_types(graph);
  const std::vector<ValueType>& type = types[static_cast<size_t>(graph.outputs().at(0))];
  return !type.empty() && type[0].is_sample_by_sample();
}

// Arrays for a network of several inputs, as they are. A network whose sample is another tool's
// whole batch takes that batch as the other tool does: without one of ours in front.
std::vector<Tensor> several_inputs(const PredictSpec& spec, const Graph& graph) {
  std::vector<Tensor> tensors;
  const std::vector<NodeId> placeholders = graph.placeholders();
  for (size_t i = 0; i < placeholders.size(); ++i) {
    const Node& placeholder = graph.node(placeholders[i]);
    Shape shape = placeholder.sample_shape;
    Tensor rows = rows_of_file(spec.inputs[i], shape);
    if (takes_whole_batch(graph) && rows.numel() == element_count(shape))
      rows = rows.reshaped({1, rows.numel()});
    if (row_width(rows) != element_count(shape))
      throw Error(spec.inputs[i],
                  fmt::format("rows have {} values, the network's input '{}' takes {}",
                              row_width(rows), placeholder.name, element_count(shape)));
    if (i > 0 && rows.shape().at(0) != tensors[0].shape()[0])
      throw Error(spec.inputs[i], fmt::format("has {} rows, {} has {}", rows.shape()[0],
                                              spec.inputs[0], tensors[0].shape()[0]));
    shape.insert(shape.begin(), rows.shape()[0]);
    tensors.push_back(rows.reshaped(shape).to(placeholder.element));
  }
  return tensors;
}

// As PyTorch prints a float32 figure: all the digits of the nearest double.
double single(double value) { return static_cast<double>(static_cast<float>(value)); }

// A batch larger than the data would only take memory.
int64_t batch_for(int64_t wanted, int64_t rows) {
  return std::min(wanted, std::max<int64_t>(1, rows));
}

}  // namespace

Shape input_shape(const std::string& path) {
  if (holds_pictures(path)) return pictures_shape(path);
  if (const auto array = array_of(path)) return array->shape();
  return {0, static_cast<int64_t>(open_table(path)->columns().size())};
}

std::vector<std::pair<std::string, double>> named_figures(const Evaluation& evaluation,
                                                          bool classification) {
  const std::string& split = evaluation.split;
  const std::string prefix = split == "validation" ? "val" : split;
  std::vector<std::pair<std::string, double>> figures;
  if (classification)
    figures.emplace_back(prefix + "_acc_epoch", single(evaluation.score.accuracy()));
  figures.emplace_back(prefix + "_loss_epoch", single(evaluation.score.loss()));
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
  apply_passes_aloud();
  check_split(this->split(split), data(), network_.graph);
  CompileOptions options;
  options.batch_size = batch_for(spec_.batch_size, this->split(split).rows());
  const NetworkNotes& notes = network_.notes;
  if (!notes.loss.empty())
    observer_.info(fmt::format("Loss: {}, with which it was trained", printable(notes.loss)));
  options.loss = loss_for(data(), notes.loss, notes.loss_options);
  options.threads = spec_.threads;
  Program program = Program::compile(network_.graph, options);
  return evaluate_program(program, split);
}

Evaluation Experiment::evaluate_program(Program& program, const std::string& name) const {
  const Split& rows = split(name);
  Evaluation result;
  result.split = name;
  const auto start = std::chrono::steady_clock::now();
  const auto elapsed = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  result.outputs = predict_rows(program, rows, &result.score, [&](int64_t batch, int64_t batches) {
    if (observer_.progress) observer_.progress({"Testing", batch, batches, elapsed()});
  });
  result.seconds = elapsed();
  result.record = evaluation_record(name, rows, result.outputs, result.score, data());
  return result;
}

std::vector<Tensor> Experiment::predict(const PredictSpec& spec) {
  apply_passes_aloud();
  const size_t wanted = network_.graph.placeholders().size();
  if (spec.inputs.size() != wanted)
    throw Error("--input",
                fmt::format("the network {} takes {} inputs, {} {} given", printable(network_.name),
                            wanted, spec.inputs.size(), spec.inputs.size() == 1 ? "is" : "are"),
                wanted == 1 ? "name one file" : "name a file for each, in the graph's order");
  const Graph& graph = network_.graph;
  if (wanted > 1 || graph.outputs().size() > 1 || takes_whole_batch(graph) ||
      !gives_a_row_for_each_sample(graph)) {
    const std::vector<Tensor> inputs = several_inputs(spec, graph);
    std::vector<Tensor> outputs = run(graph, inputs, spec_.threads);
    if (takes_whole_batch(graph) && inputs[0].dim(0) == 1)
      for (Tensor& output : outputs)
        output = output.reshaped({output.shape().begin() + 1, output.shape().end()});
    return outputs;
  }
  Split rows;
  std::vector<int64_t> left_out;
  DatasetOptions reading = spec_.data.options;
  reading.notify = [this](const std::string& line) { observer_.warning(line); };
  rows.x = input_rows(spec, network_, reading, left_out);
  CompileOptions options;
  options.batch_size = batch_for(spec_.batch_size, rows.rows());
  options.threads = spec_.threads;
  Program program = Program::compile(network_.graph, options);
  const Tensor outputs = predict_rows(program, rows);
  return {spec.keep_places && !left_out.empty() ? with_gaps(outputs, left_out) : outputs};
}

}  // namespace mase
