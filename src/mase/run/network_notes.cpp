// SPDX-License-Identifier: Apache-2.0
// What a file says about its network beside the weights, as plain values and back. The file may be
// anybody's: what is not as we write it is left out or refused, never trusted.
#include <algorithm>
#include <optional>

#include "mase/io/networks/notes_property.h"
#include "mase/run/network.h"

namespace mase {
namespace {

Value data_value(const DataSpec& data) {
  const DatasetOptions& options = data.options;
  return Dict{{"name", data.name},
              {"validation_split", options.validation_split},
              {"arguments", options.arguments},
              {"target", options.target},
              {"task", options.task},
              {"categorical", options.categorical},
              {"scaling", options.scaling},
              {"class_weights", options.class_weighting},
              {"drop_bad_rows", options.drop_bad_rows},
              {"fill_missing", options.fill_missing},
              {"missing_values", options.missing_values},
              {"ignore", options.ignore}};
}

DataSpec data_from_value(const Value& value) {
  DataSpec data;
  const auto text = [&](const char* key, std::string& into) {
    if (value[key].is_string()) into = value[key].as_string();
  };
  text("name", data.name);
  text("validation_split", data.options.validation_split);
  text("target", data.options.target);
  text("task", data.options.task);
  text("categorical", data.options.categorical);
  text("scaling", data.options.scaling);
  text("class_weights", data.options.class_weighting);
  text("missing_values", data.options.missing_values);
  text("ignore", data.options.ignore);
  if (value["fill_missing"].is_bool()) data.options.fill_missing = value["fill_missing"].as_bool();
  if (value["arguments"].is_dict()) data.options.arguments = value["arguments"];
  if (value["drop_bad_rows"].is_bool())
    data.options.drop_bad_rows = value["drop_bad_rows"].as_bool();
  return data;
}

// One number for each of `groups` equal parts; nothing if they differ within one.
std::optional<List> one_for_each(const std::vector<float>& numbers, size_t groups) {
  List list;
  if (groups == 0 || numbers.size() % groups != 0) return {};
  const size_t size = numbers.size() / groups;
  for (size_t group = 0; group < groups; ++group) {
    for (size_t i = 1; i < size; ++i)
      if (numbers[group * size + i] != numbers[group * size]) return {};
    list.emplace_back(double{numbers[group * size]});
  }
  return list;
}

// For whoever reads it with no program of ours: every number is written out.
Value plain_preprocessing(const Preprocessing& preprocessing, const Shape& sample) {
  Dict plain{{"rule", "x = (raw - offset) / scale"}};
  const size_t channels = sample.size() == 3 ? static_cast<size_t>(sample[0]) : 0;
  auto offset = one_for_each(preprocessing.offset, channels);
  auto scale = one_for_each(preprocessing.scale, channels);
  const bool by_channel = offset && scale;
  plain.set("per", by_channel ? "channel" : "feature");
  if (!by_channel) {
    offset = one_for_each(preprocessing.offset, preprocessing.offset.size());
    scale = one_for_each(preprocessing.scale, preprocessing.scale.size());
    List names;
    for (size_t i = 0; i < preprocessing.feature_names.size(); ++i)
      names.emplace_back(preprocessing.feature_names[i]);
    plain.set("features", std::move(names));
  }
  plain.set("offset", offset.value_or(List{}));
  plain.set("scale", scale.value_or(List{}));
  if (preprocessing.description.is_dict()) plain.set("description", preprocessing.description);
  return plain;
}

}  // namespace

std::vector<std::pair<std::string, std::string>> notes_for_others(const NetworkNotes& notes) {
  std::vector<std::pair<std::string, std::string>> properties;
  // What ch reads again. Where the data lay is nobody's business but the owner's.
  NetworkNotes own = notes;
  own.data.reset();
  if (own.preprocessing || !own.class_names.empty())
    properties.emplace_back(notes_property, to_json(notes_value(own)));
  if (notes.preprocessing)
    properties.emplace_back("mase.preprocessing",
                            to_json(plain_preprocessing(*notes.preprocessing, notes.sample_shape)));
  if (!notes.class_names.empty())
    properties.emplace_back("mase.classes", to_json(Value::of(notes.class_names)));
  return properties;
}

NetworkNotes notes_of(const Checkpoint& checkpoint) {
  NetworkNotes notes;
  Value ours = checkpoint.contents.is_dict() ? checkpoint.contents["mase"] : Value();
  if (ours.is_string()) ours = parse_json(ours.as_string(), notes_property);
  if (!ours.is_dict()) return notes;
  const auto text = [&](const char* key) {
    return ours[key].is_string() ? ours[key].as_string() : std::string();
  };
  notes.model = text("model");
  notes.task = text("task");
  notes.dataset = text("dataset");
  notes.identity = text("dataset_identity");
  if (ours["preprocessing"].is_dict())
    notes.preprocessing = preprocessing_from_value(ours["preprocessing"]);
  if (ours["classes"].is_list()) notes.class_names = ours["classes"].as_string_list("classes");
  constexpr int64_t largest = 1 << 20;
  Shape sample;
  if (ours["sample_shape"].is_list()) sample = ours["sample_shape"].as_int_list("sample_shape");
  const bool sane = std::all_of(sample.begin(), sample.end(),
                                [](int64_t dim) { return dim >= 1 && dim <= largest; });
  if (sane && sample.size() <= 4) notes.sample_shape = sample;
  if (ours["outputs"].is_int() && ours["outputs"].as_int() >= 1 &&
      ours["outputs"].as_int() <= largest)
    notes.outputs = ours["outputs"].as_int();
  notes.loss = text("loss");
  if (ours["loss_options"].is_dict()) notes.loss_options = ours["loss_options"];
  if (ours["data"].is_dict() && ours["data"]["name"].is_string())
    notes.data = data_from_value(ours["data"]);
  return notes;
}

Value notes_value(const NetworkNotes& notes) {
  Dict ours{{"model", notes.model},
            {"task", notes.task},
            {"classes", Value::of(notes.class_names)},
            {"sample_shape", Value::of(notes.sample_shape)},
            {"outputs", notes.outputs},
            {"dataset", notes.dataset},
            {"dataset_identity", notes.identity}};
  if (notes.preprocessing) ours.set("preprocessing", preprocessing_to_value(*notes.preprocessing));
  if (notes.data) ours.set("data", data_value(*notes.data));
  if (!notes.loss.empty()) {
    ours.set("loss", notes.loss);
    ours.set("loss_options", notes.loss_options);
  }
  return ours;
}

NetworkNotes notes_about(const std::string& model, const std::string& task, const DataSpec& data,
                         const Dataset& dataset) {
  NetworkNotes notes;
  notes.model = model;
  notes.task = task;
  notes.preprocessing = dataset.preprocessing;
  notes.class_names = dataset.class_names;
  notes.sample_shape = dataset.sample_shape();
  notes.outputs = dataset.outputs();
  notes.dataset = dataset.name;
  notes.identity = dataset.identity;
  notes.data = data;
  return notes;
}

}  // namespace mase
