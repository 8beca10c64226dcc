// SPDX-License-Identifier: Apache-2.0
#include "mase/run/input_rows.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "mase/base/text.h"
#include "mase/data/arrays.h"
#include "mase/data/pictures.h"
#include "mase/data/prepare.h"
#include "mase/data/table.h"
#include "mase/data/text_rows.h"
#include "mase/data/tokens.h"
#include "mase/io/numpy/numpy_tensors.h"
#include "mase/io/tables/table_source.h"
#include "mase/models/hf.h"

namespace mase {
namespace {

int64_t width_of_rows(const Tensor& rows) {
  return rows.numel() / std::max<int64_t>(1, rows.shape().at(0));
}

std::string kind_of(const std::string& path) {
  return lower_case(std::filesystem::path(path).extension().string());
}

[[noreturn]] void no_such_array(const std::string& path, const std::string& wanted,
                                std::vector<std::string> names) {
  for (std::string& name : names) name = printable(name);
  throw Error(path, wanted.empty() ? "holds several arrays" : fmt::format("no '{}'", wanted),
              "choose one with --tensor: " + join(names, ", "));
}

Tensor array_of_safetensors(const std::string& path, const std::string& wanted) {
  const TensorTable table = load_safetensors(path);
  std::vector<std::string> names;
  for (const auto& [name, tensor] : table) {
    names.push_back(name);
    if (name == wanted || (wanted.empty() && (name == "x" || table.size() == 1))) {
      if (tensor.shape().empty())
        throw Error(path, fmt::format("'{}' is a single number", printable(name)));
      return tensor;
    }
  }
  no_such_array(path, wanted, names);
}

// Arrays of one length are a table side by side; so are vectors.
bool is_table_of_columns(const TensorTable& tensors) {
  return std::all_of(tensors.begin(), tensors.end(),
                     [](const auto& entry) { return entry.second.shape().size() == 1; });
}

// The array that a .npz holds for a network to take; nothing if it is a table of columns.
std::optional<Tensor> array_of_archive(const std::string& path, const std::string& wanted) {
  const std::vector<std::string> names = npz_names(path);
  const std::string name = wanted.empty() ? input_array(names) : wanted;
  Dict skipped;
  const TensorTable tensors = read_numpy_tensors(path, &skipped);
  for (const auto& [key, tensor] : tensors)
    if (key == name) return tensor;
  if (skipped.contains(name))
    throw Error(path,
                fmt::format("'{}' cannot be read: {}", printable(name), skipped[name].as_string()));
  if (wanted.empty() && is_table_of_columns(tensors)) return {};
  no_such_array(path, wanted, names);
}

// What a .npy or .npz holds, if it is numbers and no table.
std::optional<Tensor> array_of_file(const std::string& path, const std::string& wanted) {
  if (kind_of(path) == ".npz" && looks_like_npz(path)) return array_of_archive(path, wanted);
  if (kind_of(path) != ".npy" || !looks_like_npy(path)) return {};
  const TensorTable tensors = read_numpy_tensors(path);
  if (tensors.size() != 1 || tensors[0].second.numel() == 0) return {};
  return tensors[0].second;
}

// Columns in file order (of an archive: by name), for arrays, which have no names.
Tensor rows_of_array(const std::string& path, const std::string& wanted) {
  if (const auto array = array_of_file(path, wanted)) {
    const int64_t rows = array->shape().empty() ? 1 : array->shape()[0];
    return array->to(DType::f32).reshaped({rows, array->numel() / std::max<int64_t>(1, rows)});
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

// The vocabulary that is named, or the one of the data that the network was trained with.
std::string vocabulary_of(const InputOptions& options, const Network& network) {
  if (!options.vocabulary.empty() || !network.notes.data) return options.vocabulary;
  const Value& arguments = network.notes.data->options.arguments;
  for (const char* key : {"vocabulary", "tokenizer"}) {
    const Value& noted = arguments.is_dict() ? arguments[key] : Value();
    if (noted.is_string() && !noted.as_string().empty()) return noted.as_string();
  }
  return "";
}

Tensor rows_of_sentences(const std::string& path, const Node& input, const Network& network,
                         const InputOptions& options) {
  if (input.element != DType::i64)
    throw Error(path, "holds sentences, and the network takes no tokens",
                "give rows of numbers: a .csv or a .npy");
  const std::string vocabulary = vocabulary_of(options, network);
  std::error_code ignored;
  if (!vocabulary.empty() && !std::filesystem::exists(vocabulary, ignored))
    throw Error(vocabulary, "no such file: the vocabulary that the network was trained with",
                "name it: --vocabulary FILE");
  std::string notice;
  const int64_t length = element_count(input.sample_shape);
  const bool packed = is_hf_graph(network.graph) && network.graph.meta.at("hf")["packed"].is_int();
  Tensor ids = packed ? packed_sentences(path, {vocabulary, length}, notice)
                      : read_sentences(path, vocabulary, length, notice);
  if (!notice.empty() && options.data.notify)
    options.data.notify(fmt::format("{}: {}", path, notice));
  return ids.to(DType::f32);
}

// Of one file, whatever it is.
Tensor rows_of_file(const std::string& path, const Node& input, const Network& network,
                    const InputOptions& options) {
  if (holds_pictures(path)) return read_pictures(path, input.sample_shape);
  if (is_sentence_file(path)) return rows_of_sentences(path, input, network, options);
  if (kind_of(path) == ".safetensors")
    return array_of_safetensors(path, options.tensor).to(DType::f32);
  return rows_of_array(path, options.tensor);
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

// Rows of an array with a missing or infinite value: left out and told, or the first is an error.
// With `fills` what is missing is filled later.
Tensor clean_rows(const Tensor& x, const std::string& path, const DatasetOptions& options,
                  bool fills, std::vector<int64_t>& left_out) {
  const int64_t rows = x.shape().at(0), width = width_of_rows(x);
  const float* values = x.data<float>();
  std::vector<std::string> places;
  const auto bad = [&](int64_t row) {
    return !std::all_of(values + row * width, values + (row + 1) * width, [&](float value) {
      return std::isfinite(value) || (fills && std::isnan(value));
    });
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

bool is_foreign(const Network& network) {
  return network.graph.meta.contains("onnx") && !network.notes.preprocessing;
}

Tensor rows_to_take(const std::string& path, const Network& network, const InputOptions& options,
                    std::vector<int64_t>& left_out) {
  const std::string kind = kind_of(path);
  const Graph& graph = network.graph;
  const Node& input = graph.node(graph.placeholders().at(0));
  const int64_t features = element_count(input.sample_shape);
  const std::optional<Preprocessing>& preprocessing = network.notes.preprocessing;
  const bool prepare = preprocessing && options.preprocess;
  const bool named = kind == ".csv" || kind == ".arff" || kind == ".h5" || kind == ".hdf5" ||
                     (kind == ".npz" && !array_of_file(path, options.tensor));
  if (prepare && named && !(kind == ".csv" && is_nameless(path, *preprocessing)))
    return load_rows(path, *preprocessing, options.data, &left_out, false).x;
  Tensor x = rows_of_file(path, input, network, options);
  if (x.shape().at(0) > 0 && width_of_rows(x) != features)
    throw Error(
        path, fmt::format("rows have {} values, the network takes {}", width_of_rows(x), features),
        width_of_rows(x) == 1 && x.shape().at(0) == features
            ? "a single row has the shape [1, " + std::to_string(features) + "]"
            : "give one column for each feature and nothing else");
  // Another tool's network may mean missing and infinite values.
  const bool fills = prepare && !preprocessing->fill.empty();
  if (!is_foreign(network)) x = clean_rows(x, path, options.data, fills, left_out);
  if (prepare && static_cast<int64_t>(preprocessing->offset.size()) == features)
    scale_rows(x.mutable_data<float>(), x.shape()[0], *preprocessing);
  return x;
}

// One below the other, as rows.
Tensor joined(const std::vector<Tensor>& parts) {
  if (parts.size() == 1) return parts[0];
  std::vector<float> values;
  int64_t rows = 0;
  for (const Tensor& part : parts) {
    values.insert(values.end(), part.data<float>(), part.data<float>() + part.numel());
    rows += part.shape().at(0);
  }
  const int64_t width = rows ? static_cast<int64_t>(values.size()) / rows : 0;
  return Tensor::of({rows, width}, values);
}

// A picture is a file of its own; rows of a table are named where there are several tables.
void add_names(const std::string& path, int64_t rows, bool several,
               std::vector<std::string>& files) {
  if (holds_pictures(path))
    for (std::string& file : pictures_of(path)) files.push_back(std::move(file));
  else if (several)
    files.insert(files.end(), static_cast<size_t>(rows), path);
}

bool are_named(const std::vector<std::string>& paths) {
  return paths.size() > 1 || holds_pictures(paths.at(0));
}

}  // namespace

InputRows input_rows(const std::vector<std::string>& paths, const Network& network,
                     const InputOptions& options) {
  InputRows result;
  std::vector<Tensor> parts;
  int64_t places = 0;
  for (const std::string& path : paths) {
    std::vector<int64_t> left_out;
    parts.push_back(rows_to_take(path, network, options, left_out));
    for (const int64_t place : left_out) result.left_out.push_back(places + place);
    const int64_t own = parts.back().shape().at(0) + static_cast<int64_t>(left_out.size());
    add_names(path, own, are_named(paths), result.files);
    places += own;
  }
  result.x = joined(parts);
  return result;
}

std::vector<Tensor> input_tensors(const std::vector<std::string>& paths, const Network& network,
                                  bool whole_batch, const InputOptions& options,
                                  std::vector<std::string>& files) {
  const Graph& graph = network.graph;
  std::vector<Tensor> tensors;
  const std::vector<NodeId> placeholders = graph.placeholders();
  for (size_t i = 0; i < placeholders.size(); ++i) {
    const Node& placeholder = graph.node(placeholders[i]);
    Shape shape = placeholder.sample_shape;
    std::vector<Tensor> parts;
    const bool only = placeholders.size() == 1;
    for (const std::string& path : only ? paths : std::vector<std::string>{paths[i]}) {
      Tensor rows = rows_of_file(path, placeholder, network, options);
      if (whole_batch && rows.numel() == element_count(shape))
        rows = rows.reshaped({1, rows.numel()});
      if (width_of_rows(rows) != element_count(shape))
        throw Error(path, fmt::format("rows have {} values, the network's input '{}' takes {}",
                                      width_of_rows(rows), placeholder.name, element_count(shape)));
      if (only) add_names(path, rows.shape()[0], are_named(paths), files);
      parts.push_back(std::move(rows));
    }
    const Tensor rows = joined(parts);
    if (i > 0 && rows.shape().at(0) != tensors[0].shape()[0])
      throw Error(paths[i], fmt::format("has {} rows, {} has {}", rows.shape()[0], paths[0],
                                        tensors[0].shape()[0]));
    shape.insert(shape.begin(), rows.shape()[0]);
    tensors.push_back(rows.reshaped(shape).to(placeholder.element));
  }
  return tensors;
}

Shape input_shape(const std::string& path, const InputOptions& options) {
  if (holds_pictures(path)) return pictures_shape(path);
  std::string notice;
  if (is_sentence_file(path)) return read_sentences(path, options.vocabulary, 0, notice).shape();
  if (kind_of(path) == ".safetensors") return array_of_safetensors(path, options.tensor).shape();
  if (const auto array = array_of_file(path, options.tensor)) return array->shape();
  return {0, static_cast<int64_t>(open_table(path)->columns().size())};
}

}  // namespace mase
