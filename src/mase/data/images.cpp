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
  for (int64_t c = 0; c < sample[0]; ++c)
    for (int64_t y = 0; y < sample[1]; ++y)
      for (int64_t x = 0; x < sample[2]; ++x) {
        result.feature_names.push_back(fmt::format("pixel_{}_{}_{}", c, y, x));
        result.offset.push_back(static_cast<float>(channels.offset[static_cast<size_t>(c)]));
        result.scale.push_back(static_cast<float>(channels.scale[static_cast<size_t>(c)]));
      }
  return result;
}

Split split_of(const ByteImages& images, const std::vector<uint32_t>& rows,
               const Preprocessing& preprocessing) {
  Shape shape = images.sample;
  const auto features = static_cast<size_t>(element_count(images.sample));
  shape.insert(shape.begin(), static_cast<int64_t>(rows.size()));
  Split split;
  split.x = Tensor(shape);
  split.labels = Tensor({shape[0]}, DType::i32);
  float* x = split.x.mutable_data<float>();
  auto* labels = split.labels.mutable_data<int32_t>();
  for (size_t r = 0; r < rows.size(); ++r) {
    const uint8_t* pixels = images.pixels.data() + rows[r] * features;
    for (size_t f = 0; f < features; ++f)
      x[r * features + f] =
          (static_cast<float>(pixels[f]) - preprocessing.offset[f]) / preprocessing.scale[f];
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

std::vector<std::string> find_files(const std::string& dataset,
                                    const std::vector<std::string>& folders,
                                    const std::vector<std::string>& names) {
  std::error_code ignored;
  for (const std::string& folder : folders) {
    std::vector<std::string> paths;
    for (const std::string& name : names)
      for (const char* packed : {"", ".gz"}) {
        const std::string path = folder + "/" + name + packed;
        if (!std::filesystem::is_regular_file(path, ignored)) continue;
        paths.push_back(path);
        break;
      }
    if (paths.size() == names.size()) return paths;
  }
  throw Error(dataset, fmt::format("no files of this data set in {}", join(folders, ", ")),
              fmt::format("put {} there, or name their folder with --data-dir", join(names, ", ")));
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
  const auto plane = static_cast<size_t>(train.sample[1] * train.sample[2]);
  const Preprocessing& scaled = dataset.preprocessing;
  dataset.augmentation.flip =
      options.arguments["flip"].is_bool() && options.arguments["flip"].as_bool();
  if (options.arguments["crop"].is_int())
    dataset.augmentation.crop = options.arguments["crop"].as_int();
  for (size_t c = 0; c < static_cast<size_t>(train.sample[0]); ++c)
    dataset.augmentation.fill.push_back(-scaled.offset[c * plane] / scaled.scale[c * plane]);
  dataset.train = split_of(train, kept, dataset.preprocessing);
  dataset.validation = share ? split_of(train, held, dataset.preprocessing) : dataset.train;
  std::vector<uint32_t> all(static_cast<size_t>(test.count()));
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<uint32_t>(i);
  dataset.test = split_of(test, all, dataset.preprocessing);
  return dataset;
}

}  // namespace mase
