// SPDX-License-Identifier: Apache-2.0
#include "mase/data/arrays.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include "mase/base/file.h"
#include "mase/base/text.h"
#include "mase/data/digest.h"
#include "mase/data/images.h"
#include "mase/data/prepare.h"

namespace mase {
namespace {

bool is_whole(DType dtype) {
  return dtype != DType::f64 && dtype != DType::f32 && dtype != DType::f16 && dtype != DType::bf16;
}

Shape sample_of(const Tensor& inputs) { return {inputs.shape().begin() + 1, inputs.shape().end()}; }

void check_rows(const ArrayRows& rows, const std::string& place) {
  if (rows.inputs.shape().size() < 2 || rows.inputs.numel() == 0)
    throw Error(place,
                fmt::format("inputs of shape {} are no samples", shape_text(rows.inputs.shape())),
                "the first axis counts samples");
  if (rows.targets.shape().empty() || rows.targets.dim(0) != rows.rows())
    throw Error(place,
                fmt::format("{} samples and targets of shape {}", rows.rows(),
                            shape_text(rows.targets.shape())),
                "there is one target, or one row of targets, for each sample");
}

// One class number for each row.
std::vector<int32_t> classes_of(const Tensor& targets, const std::string& place) {
  if (targets.numel() != targets.dim(0))
    throw Error(place,
                fmt::format("targets of shape {} are no classes", shape_text(targets.shape())),
                "classes are one number for each sample");
  std::vector<int32_t> classes(static_cast<size_t>(targets.numel()));
  constexpr double most = 65535;
  for (size_t i = 0; i < classes.size(); ++i) {
    const double value = targets.item(static_cast<int64_t>(i));
    if (!(value >= 0 && value <= most) || value != std::floor(value))
      throw Error(place, fmt::format("{} in row {} is no class", value, i),
                  "classes are whole numbers from 0 on; --task regression takes any numbers");
    classes[i] = static_cast<int32_t>(value);
  }
  return classes;
}

// Channels behind height and width, as TensorFlow has them, come to the front.
bool has_channels_last(const Shape& sample) {
  const auto channels = [](int64_t size) { return size == 1 || size == 3 || size == 4; };
  return sample.size() == 3 && channels(sample[2]) && !channels(sample[0]);
}

ByteImages images_of(const ArrayRows& rows, std::vector<int32_t> labels) {
  ByteImages images;
  images.sample = sample_of(rows.inputs);
  const auto* bytes = rows.inputs.data<uint8_t>();
  const bool last = has_channels_last(images.sample);
  if (last) images.sample = {images.sample[2], images.sample[0], images.sample[1]};
  if (images.sample.size() == 2) images.sample.insert(images.sample.begin(), 1);
  images.labels = std::move(labels);
  images.pixels.assign(bytes, bytes + rows.inputs.numel());
  if (!last || images.sample[0] == 1) return images;
  const auto channels = static_cast<size_t>(images.sample[0]);
  const auto plane = static_cast<size_t>(images.sample[1] * images.sample[2]);
  for (size_t r = 0; r < images.labels.size(); ++r)
    for (size_t c = 0; c < channels; ++c)
      for (size_t p = 0; p < plane; ++p)
        images.pixels[(r * channels + c) * plane + p] = bytes[(r * plane + p) * channels + c];
  return images;
}

// The floats of both parts, one behind the other.
RawTable table_of(const ArrayData& data, const Shape& sample, bool fills) {
  RawTable table;
  const auto width = static_cast<size_t>(element_count(sample));
  table.feature_names = FeatureNames::of_places("x", sample);
  table.rows = data.train.rows() + (data.test ? data.test->rows() : 0);
  Tensor all({table.rows, static_cast<int64_t>(width)});
  float* to = all.mutable_data<float>();
  const auto append = [&](const ArrayRows& rows) {
    const Tensor floats = rows.inputs.to(DType::f32);
    to = std::copy_n(floats.data<float>(), floats.numel(), to);
  };
  append(data.train);
  if (data.test) append(*data.test);
  const float* values = all.data<float>();
  for (int64_t i = 0; i < all.numel(); ++i)
    if (!std::isfinite(values[i]) && !(fills && std::isnan(values[i])))
      throw Error(data.place,
                  fmt::format("{} in sample {}", values[i], i / static_cast<int64_t>(width)),
                  "inputs must be finite numbers");
  auto owner = std::make_shared<Tensor>(std::move(all));
  table.x =
      std::shared_ptr<std::byte>(owner, reinterpret_cast<std::byte*>(owner->mutable_data<float>()));
  return table;
}

std::vector<float> numbers_of(const Tensor& targets, const std::string& place) {
  const Tensor floats = targets.to(DType::f32);
  std::vector<float> values(floats.data<float>(), floats.data<float>() + floats.numel());
  for (const float value : values)
    if (!std::isfinite(value))
      throw Error(place, fmt::format("a target is {}", value), "targets must be finite numbers");
  return values;
}

}  // namespace

ArrayData with_classes(ArrayData data, const std::string& task,
                       const std::vector<std::string>& known, const std::string& known_task) {
  Tensor& targets = data.train.targets;
  const auto checked = [&] {
    if (known.empty() && data.classes.size() == 1)
      throw Error(data.place, "there is only one class", "a classification needs at least two");
    return data;
  };
  if (targets.shape().empty() || !data.classes.empty()) return checked();  // names are given
  constexpr size_t most_kinds = 100;
  std::map<int64_t, int32_t> kinds;
  bool whole = targets.numel() == targets.dim(0);
  for (int64_t i = 0; i < targets.numel() && whole; ++i) {
    const double value = targets.item(i);
    whole = value == std::floor(value) && std::abs(value) < 1e9;
    if (whole && kinds.size() <= most_kinds) kinds.emplace(static_cast<int64_t>(value), 0);
  }
  whole = whole && kinds.size() <= most_kinds;
  const bool few = whole && static_cast<int64_t>(kinds.size()) * 2 <= targets.numel();
  const bool classes = task != "auto"       ? task == "classification"
                       : known_task.empty() ? few
                                            : known_task != "regression";
  if (classes && !whole)
    throw Error(data.place,
                fmt::format("the targets are not at most {} kinds of whole numbers", most_kinds),
                "use them for regression, or give classes as words");
  Tensor changed = targets.to(DType::f32);
  if (classes) {
    bool by_place = false;  // numbers that are no names of the network's classes
    for (auto& [value, place] : kinds) {
      place = static_cast<int32_t>(data.classes.size());
      data.classes.push_back(std::to_string(value));
      by_place = by_place || (!known.empty() && std::find(known.begin(), known.end(),
                                                          data.classes.back()) == known.end());
    }
    if (by_place) {
      data.classes = known;
      for (auto& [value, place] : kinds) {
        if (value < 0 || value >= static_cast<int64_t>(known.size()))
          throw Error(data.place,
                      fmt::format("class {}, and the network knows {}", value, known.size()));
        place = static_cast<int32_t>(value);
      }
    }
    changed = Tensor(targets.shape(), DType::i64);
    for (int64_t i = 0; i < targets.numel(); ++i)
      changed.mutable_data<int64_t>()[i] = kinds.at(static_cast<int64_t>(targets.item(i)));
  }
  if (data.test) data.test->targets = changed;
  targets = std::move(changed);
  return checked();
}

// A list of numbers is one number for each sample.
void add_sample_axis(ArrayRows& rows) {
  if (rows.inputs.shape().size() == 1) rows.inputs = rows.inputs.reshaped({rows.rows(), 1});
}

Dataset array_dataset(ArrayData data, const DatasetOptions& options) {
  for (const auto& [given, name] : {std::pair{!options.missing_values.empty(), "missing_values"},
                                    std::pair{!options.ignore.empty(), "ignore"}})
    if (given)
      throw Error(name, fmt::format("is for tables, and {} has no names or words", data.place),
                  "leave it out");
  add_sample_axis(data.train);
  check_rows(data.train, data.place);
  if (data.test) {
    add_sample_axis(*data.test);
    check_rows(*data.test, data.place);
  }
  const Shape sample = sample_of(data.train.inputs);
  const DType element = data.train.inputs.dtype();
  if (data.test && (sample_of(data.test->inputs) != sample || data.test->inputs.dtype() != element))
    throw Error(data.place, "training and test samples differ in shape or type");
  const bool classification = options.task == "auto" ? is_whole(data.train.targets.dtype())
                                                     : options.task == "classification";
  std::vector<int32_t> labels, test_labels;
  if (classification) {
    labels = classes_of(data.train.targets, data.place);
    if (data.test) test_labels = classes_of(data.test->targets, data.place);
    int32_t most = 0;
    for (const std::vector<int32_t>* all : {&labels, &test_labels})
      for (const int32_t label : *all) most = std::max(most, label);
    if (data.classes.empty())
      for (int32_t i = 0; i <= most; ++i) data.classes.push_back(std::to_string(i));
    if (static_cast<size_t>(most) >= data.classes.size())
      throw Error(data.place, fmt::format("class {} of {} classes", most, data.classes.size()));
  }
  if (element == DType::u8 && classification && (sample.size() == 2 || sample.size() == 3)) {
    if (has_channels_last(sample)) {
      if (!data.notice.empty()) data.notice += "; ";
      data.notice +=
          fmt::format("images {}: the channels were moved to the front", shape_text(sample));
    }
    ByteImages train = images_of(data.train, std::move(labels));
    ByteImages test = data.test ? images_of(*data.test, std::move(test_labels))
                                : take_test_images(train, data.name);
    Dataset dataset =
        image_dataset(data.name, std::move(train), std::move(test), data.classes, options);
    dataset.notice = data.notice;
    return dataset;
  }
  if (options.arguments.is_dict() && !options.arguments.as_dict().empty() &&
      (options.arguments["flip"].is_bool() || options.arguments["crop"].is_int()))
    throw Error(data.place, "only images of bytes can be flipped and cropped");
  Dataset dataset;
  dataset.name = data.name;
  dataset.variant = is_whole(element) ? "tokens" : "arrays";
  dataset.notice = data.notice;
  dataset.classification = classification;
  dataset.class_names = data.classes;
  const bool fills = options.fill_missing || (options.apply && !options.apply->fill.empty());
  RawTable table = table_of(data, sample, fills);
  Sha256 digest;
  for (const ArrayRows* rows : {&data.train, data.test ? &*data.test : nullptr})
    if (rows) {
      digest.add({rows->inputs.raw(), rows->inputs.bytes()});
      digest.add({rows->targets.raw(), rows->targets.bytes()});
    }
  dataset.identity = "sha256:" + digest.hex();
  if (classification) {
    table.labels = std::move(labels);
    table.labels.insert(table.labels.end(), test_labels.begin(), test_labels.end());
  } else {
    table.targets = numbers_of(data.train.targets, data.place);
    if (data.test) {
      const std::vector<float> more = numbers_of(data.test->targets, data.place);
      table.targets.insert(table.targets.end(), more.begin(), more.end());
    }
  }
  DatasetOptions scaled = options;
  if (is_whole(element)) scaled.scaling = "none";
  if (options.apply) {  // arrays have no names: their order says which feature is which
    if (options.apply->offset.size() != table.feature_names.size())
      throw Error(data.place,
                  fmt::format("samples of {} numbers, and the network was trained on {}",
                              table.feature_names.size(), options.apply->offset.size()));
    table.feature_names = options.apply->feature_names;
  }
  const int64_t given = data.test ? data.test->rows() : -1;
  prepare(std::move(table), scaled, data.place, dataset, given);
  if (!options.apply)
    dataset.preprocessing.description =
        Dict{{"kind", dataset.variant}, {"scaling", scaled.scaling}};
  for (Split* split : {&dataset.train, &dataset.validation, &dataset.test}) {
    Shape shape = sample;
    shape.insert(shape.begin(), split->rows());
    split->x = split->x.reshaped(shape);
  }
  return dataset;
}

}  // namespace mase
