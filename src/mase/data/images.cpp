// SPDX-License-Identifier: Apache-2.0
#include "mase/data/images.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>

#include "mase/base/random.h"
#include "mase/base/text.h"
#include "mase/data/digest.h"
#include "mase/data/prepare.h"

namespace mase {
namespace {

struct ChannelScale {
  std::vector<double> offset, scale;
};

ChannelScale fit_channels(const ByteImages& images, const std::vector<uint32_t>& rows,
                          const std::string& scaling) {
  const auto channels = static_cast<size_t>(images.sample[0]);
  const auto plane = static_cast<size_t>(images.sample[1] * images.sample[2]);
  ChannelScale result{std::vector<double>(channels, 0.0), std::vector<double>(channels, 1.0)};
  if (scaling == "min-max") result.scale.assign(channels, 255.0);
  if (scaling != "standardise") return result;
  for (size_t c = 0; c < channels; ++c) {
    // Counts of each byte: exact, whatever the number of pixels.
    std::vector<int64_t> counts(256, 0);
    for (const uint32_t row : rows) {
      const uint8_t* pixels = images.pixels.data() + (row * channels + c) * plane;
      for (size_t i = 0; i < plane; ++i) ++counts[pixels[i]];
    }
    double sum = 0, squares = 0;
    const double total = static_cast<double>(rows.size() * plane);
    for (size_t v = 0; v < 256; ++v) sum += static_cast<double>(v) * static_cast<double>(counts[v]);
    const double mean = total > 0 ? sum / total : 0;
    for (size_t v = 0; v < 256; ++v) {
      const double d = static_cast<double>(v) - mean;
      squares += d * d * static_cast<double>(counts[v]);
    }
    const double deviation = total > 0 ? std::sqrt(squares / total) : 0;
    result.offset[c] = mean;
    result.scale[c] = deviation > 0 ? deviation : 1;
  }
  return result;
}

Preprocessing preprocessing_of(const Shape& sample, const ChannelScale& channels,
                               const std::string& scaling) {
  Preprocessing result;
  result.description = Dict{{"kind", "images"}, {"scaling", scaling}};
  result.feature_names = FeatureNames::of_places("pixel", sample);
  const auto plane = static_cast<size_t>(sample[1] * sample[2]);
  for (size_t c = 0; c < static_cast<size_t>(sample[0]); ++c) {
    result.offset.insert(result.offset.end(), plane, static_cast<float>(channels.offset[c]));
    result.scale.insert(result.scale.end(), plane, static_cast<float>(channels.scale[c]));
  }
  return result;
}

Split split_of(const ByteImages& images, const std::vector<uint32_t>& rows,
               const std::shared_ptr<const ByteScale>& scale) {
  Shape shape = images.sample;
  const auto features = static_cast<size_t>(element_count(images.sample));
  shape.insert(shape.begin(), static_cast<int64_t>(rows.size()));
  Split split;
  split.x = Tensor(shape, DType::u8);
  split.bytes = scale;
  split.labels = Tensor({shape[0]}, DType::i32);
  auto* x = split.x.mutable_data<uint8_t>();
  auto* labels = split.labels.mutable_data<int32_t>();
  for (size_t r = 0; r < rows.size(); ++r) {
    std::copy_n(images.pixels.data() + rows[r] * features, features, x + r * features);
    labels[r] = images.labels[rows[r]];
  }
  return split;
}

void check_labels(const ByteImages& images, size_t classes, const std::string& name) {
  for (const int32_t label : images.labels)
    if (label < 0 || static_cast<size_t>(label) >= classes)
      throw Error(name, fmt::format("label {} in a data set of {} classes", label, classes),
                  "the file is damaged or of another data set");
}

}  // namespace

namespace {

ByteImages rows_of(const ByteImages& images, const std::vector<uint32_t>& rows) {
  ByteImages result;
  result.sample = images.sample;
  const auto size = static_cast<size_t>(element_count(images.sample));
  for (const uint32_t row : rows) {
    const auto first = images.pixels.begin() + static_cast<std::ptrdiff_t>(row * size);
    result.pixels.insert(result.pixels.end(), first, first + static_cast<std::ptrdiff_t>(size));
    result.labels.push_back(images.labels[row]);
  }
  return result;
}

// The path of a file that may be packed; empty if there is none.
std::string packed_path(const std::string& path) {
  std::error_code ignored;
  for (const char* packed : {"", ".gz"})
    if (std::filesystem::is_regular_file(path + packed, ignored)) return path + packed;
  return "";
}

}  // namespace

std::string folder_of_files(const std::vector<std::string>& folders,
                            const std::vector<std::string>& names) {
  for (const std::string& folder : folders)
    if (std::all_of(names.begin(), names.end(), [&](const std::string& name) {
          return !packed_path(folder + "/" + name).empty();
        }))
      return folder;
  return "";
}

std::vector<std::string> find_files(const std::string& dataset,
                                    const std::vector<std::string>& folders,
                                    const std::vector<std::string>& names) {
  const std::string folder = folder_of_files(folders, names);
  if (folder.empty())
    throw Error(dataset, fmt::format("no files of this data set in {}", join(folders, ", ")),
                fmt::format("ch data fetch {} downloads them; or put {} there, or name their "
                            "folder with --data-dir",
                            dataset, join(names, ", ")));
  std::vector<std::string> paths;
  for (const std::string& name : names) paths.push_back(packed_path(folder + "/" + name));
  return paths;
}

ByteImages take_test_images(ByteImages& train, const std::string& name) {
  std::vector<uint32_t> order =
      Random(split_seed, "test:" + name).permutation(static_cast<uint32_t>(train.count()));
  const auto held = static_cast<std::ptrdiff_t>(
      std::max<double>(1, test_share * static_cast<double>(order.size())));
  std::vector<uint32_t> tested(order.begin(), order.begin() + held);
  std::vector<uint32_t> kept(order.begin() + held, order.end());
  std::sort(tested.begin(), tested.end());
  std::sort(kept.begin(), kept.end());
  ByteImages test = rows_of(train, tested);
  train = rows_of(train, kept);
  return test;
}

Dataset image_dataset(const std::string& name, ByteImages train, ByteImages test,
                      std::vector<std::string> class_names, const DatasetOptions& options) {
  if (train.sample != test.sample)
    throw Error(name, fmt::format("training images are {}, test images {}",
                                  shape_text(train.sample), shape_text(test.sample)));
  check_labels(train, class_names.size(), name);
  check_labels(test, class_names.size(), name);
  Dataset dataset;
  dataset.name = name;
  dataset.variant = "images";
  dataset.class_names = std::move(class_names);
  Sha256 digest;
  for (const ByteImages* images : {&train, &test}) {
    digest.add(std::as_bytes(std::span(images->pixels)));
    digest.add(std::as_bytes(std::span(images->labels)));
  }
  dataset.identity = digest.hex();
  std::vector<uint32_t> order =
      Random(split_seed, "validation:" + name).permutation(static_cast<uint32_t>(train.count()));
  const std::optional<double> share = validation_share(options.validation_split);
  const auto validation =
      share ? static_cast<size_t>(std::ceil(*share * static_cast<double>(order.size()))) : 0;
  if (share && (validation == 0 || validation >= order.size()))
    throw Error(name, fmt::format("a validation share of {} leaves no rows", *share),
                "change --val-split");
  // Both parts in the order of the file.
  std::vector<uint32_t> held(order.begin(),
                             order.begin() + static_cast<std::ptrdiff_t>(validation));
  std::vector<uint32_t> kept(order.begin() + static_cast<std::ptrdiff_t>(validation), order.end());
  std::sort(held.begin(), held.end());
  std::sort(kept.begin(), kept.end());
  if (options.apply) {
    dataset.preprocessing = *options.apply;
    if (static_cast<int64_t>(dataset.preprocessing.offset.size()) != element_count(train.sample))
      throw Error(name, "the network was trained on samples of another size");
  } else {
    dataset.preprocessing =
        preprocessing_of(train.sample, fit_channels(train, kept, options.scaling), options.scaling);
  }
  const auto scale = std::make_shared<const ByteScale>(
      ByteScale{dataset.preprocessing.offset, dataset.preprocessing.scale});
  dataset.augmentation.flip =
      options.arguments["flip"].is_bool() && options.arguments["flip"].as_bool();
  if (options.arguments["crop"].is_int())
    dataset.augmentation.crop = options.arguments["crop"].as_int();
  dataset.train = split_of(train, kept, scale);
  dataset.validation = share ? split_of(train, held, scale) : dataset.train;
  std::vector<uint32_t> all(static_cast<size_t>(test.count()));
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<uint32_t>(i);
  dataset.test = split_of(test, all, scale);
  if (options.class_weighting == "balanced")
    dataset.class_weights =
        balanced_weights(dataset.train.labels.values<int32_t>(), dataset.class_names.size());
  return dataset;
}

}  // namespace mase
