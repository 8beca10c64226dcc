// SPDX-License-Identifier: Apache-2.0
#include "mase/run/sentences.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <limits>
#include <map>

#include "mase/base/text.h"
#include "mase/data/tokens.h"
#include "mase/run/network.h"
#include "mase/text/tokenizer.h"

namespace mase {
namespace {

namespace fs = std::filesystem;

struct Sentences {
  std::vector<std::vector<int32_t>> rows;
  std::vector<std::string> files;  // of each row, where there are several
};

Sentences sentences_of(const ExperimentSpec& spec, const Value& config, const PredictSpec& wanted,
                       const Observer& observer) {
  const std::string& folder = spec.network.load;
  const Value& most = config.is_dict() ? config["max_position_embeddings"] : Value();
  const int64_t longest = most.is_int() && most.as_int() > 0 ? most.as_int() : 0;
  const std::string vocabulary =
      wanted.vocabulary.empty() ? vocabulary_in(folder) : wanted.vocabulary;
  Sentences result;
  for (const std::string& path : wanted.inputs) {
    SentenceRows read = read_sentence_rows(path, vocabulary, longest);
    if (read.cut > 0)
      observer.warning(
          fmt::format("{}: {} of {} sentences cut to the {} tokens that the network takes", path,
                      read.cut, read.rows.size(), longest));
    for (size_t i = 0; i < read.rows.size(); ++i)
      if (read.rows[i].empty())
        throw Error(fmt::format("{}:{}", path, i + 1), "has no tokens", "leave empty lines out");
    if (wanted.inputs.size() > 1) result.files.insert(result.files.end(), read.rows.size(), path);
    std::move(read.rows.begin(), read.rows.end(), std::back_inserter(result.rows));
  }
  return result;
}

// Rows of outputs at their places; those of shorter sentences are filled up with NaN.
Tensor at_places(const std::map<size_t, std::vector<int64_t>>& places,
                 const std::map<size_t, Tensor>& parts, int64_t rows) {
  const auto& [longest, sample] = *parts.rbegin();
  const bool by_token = std::all_of(parts.begin(), parts.end(), [](const auto& part) {
    return part.second.shape().size() >= 2 &&
           part.second.dim(1) == static_cast<int64_t>(part.first);
  });
  Shape shape = sample.shape();
  shape.at(0) = rows;
  for (const auto& [length, part] : parts) {
    Shape own = part.shape();
    own.at(0) = rows;
    if (by_token) own.at(1) = static_cast<int64_t>(longest);
    if (own != shape)
      throw Error("sentences", "the network's outputs have other shapes for other lengths",
                  "give sentences of one length");
  }
  Tensor result(shape);
  float* out = result.mutable_data<float>();
  const int64_t width = result.numel() / std::max<int64_t>(1, rows);
  std::fill_n(out, result.numel(), std::numeric_limits<float>::quiet_NaN());
  for (const auto& [length, part] : parts) {
    const Tensor values = part.to(DType::f32);
    const std::vector<int64_t>& own = places.at(length);
    const int64_t count = values.numel() / static_cast<int64_t>(own.size());
    for (size_t i = 0; i < own.size(); ++i)
      std::copy_n(values.data<float>() + static_cast<int64_t>(i) * count, count,
                  out + own[i] * width);
  }
  return result;
}

}  // namespace

bool are_sentences_for_folder(const std::string& network, const std::vector<std::string>& inputs) {
  std::error_code none;
  return !inputs.empty() && (fs::is_directory(network, none) || Tokenizer::is_in(network)) &&
         std::all_of(inputs.begin(), inputs.end(), is_sentence_file);
}

std::vector<std::string> hf_class_names(const Value& config, const TensorTable& tensors) {
  std::vector<std::string> names;
  const Value& labels = config.is_dict() ? config["id2label"] : Value();
  if (!labels.is_dict()) return names;
  for (size_t i = 0; i < labels.as_dict().size(); ++i) {
    const Value& name = labels[std::to_string(i)];
    if (!name.is_string()) return {};
    names.push_back(name.as_string());
  }
  const bool classifies = std::any_of(tensors.begin(), tensors.end(), [&](const auto& entry) {
    const auto& [name, tensor] = entry;
    return (name == "classifier.weight" || name == "classifier.out_proj.weight" ||
            name == "score.weight") &&
           !tensor.shape().empty() && tensor.dim(0) == static_cast<int64_t>(names.size());
  });
  return classifies ? names : std::vector<std::string>();
}

void match_hf_classes(Dataset& dataset, const Checkpoint& checkpoint, const std::string& path) {
  const std::vector<std::string> known = hf_class_names(checkpoint.contents, checkpoint.tensors);
  if (!dataset.classification || known.size() != dataset.class_names.size()) return;
  std::vector<std::string> renamed;
  for (const std::string& name : dataset.class_names)
    for (const std::string& other : known)
      if (lower_case(name) == lower_case(other)) renamed.push_back(other);
  if (renamed.size() != known.size()) return;
  dataset.class_names = renamed;
  order_classes(dataset, known, "the network of " + path);
}

Prediction predict_sentences(const ExperimentSpec& spec, const PredictSpec& wanted,
                             const Observer& observer) {
  ExperimentSpec own = spec;
  own.network.held = std::make_shared<const Checkpoint>(*open_checkpoint(spec.network));  // once
  Sentences sentences = sentences_of(spec, own.network.held->contents, wanted, observer);
  std::map<size_t, std::vector<int64_t>> places;  // of sentences, by length
  for (size_t i = 0; i < sentences.rows.size(); ++i)
    places[sentences.rows[i].size()].push_back(static_cast<int64_t>(i));
  std::vector<std::map<size_t, Tensor>> outputs;
  Observer quiet = observer;
  quiet.log = {};  // each is the network that was told of, for another length
  for (const auto& [length, rows] : places) {
    const Shape shape{static_cast<int64_t>(rows.size()), static_cast<int64_t>(length)};
    Tensor ids(shape, DType::i64);
    auto* out = ids.mutable_data<int64_t>();
    for (const int64_t row : rows)
      for (const int32_t id : sentences.rows[static_cast<size_t>(row)]) *out++ = id;
    own.network.input_shapes = {shape};
    Experiment experiment(own, quiet);
    experiment.prepare();
    PredictSpec with = wanted;
    with.tensors = {ids};
    const Prediction part = experiment.predict(with);
    outputs.resize(part.outputs.size());
    for (size_t k = 0; k < part.outputs.size(); ++k) outputs[k].emplace(length, part.outputs[k]);
  }
  Prediction result;
  for (const auto& parts : outputs)
    result.outputs.push_back(at_places(places, parts, static_cast<int64_t>(sentences.rows.size())));
  result.files = std::move(sentences.files);
  return result;
}

}  // namespace mase
