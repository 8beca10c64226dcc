// SPDX-License-Identifier: Apache-2.0
#include "mase/data/dataset.h"

#include <algorithm>
#include <filesystem>

#include "mase/data/arrays.h"
#include "mase/data/described.h"

namespace mase {

Tensor Split::samples(int64_t first, int64_t count) const {
  if (count < 0) count = rows() - first;
  if (!bytes && first == 0 && count == rows()) return x;
  Shape shape = x.shape();
  shape[0] = count;
  Tensor result(shape);
  const int64_t width = element_count(shape) / std::max<int64_t>(1, count);
  float* out = result.mutable_data<float>();
  if (!bytes) {
    std::copy_n(x.data<float>() + first * width, count * width, out);
    return result;
  }
  for (int64_t i = 0; i < count; ++i)
    bytes->apply(x.data<uint8_t>() + (first + i) * width, out + i * width);
  return result;
}

Shape Dataset::sample_shape() const {
  const Shape& shape = train.x.shape();
  return {shape.begin() + 1, shape.end()};
}

int64_t Dataset::outputs() const {
  return classification ? static_cast<int64_t>(class_names.size()) : train.targets.dim(-1);
}

const DatasetRecord* find_dataset(const std::string& name_or_path) {
  const auto& registry = Registry<DatasetRecord>::instance();
  if (const DatasetRecord* record = registry.find(name_or_path)) return record;
  for (const DatasetRecord* record : registry.all())
    if (record->reads && record->reads(name_or_path)) return record;
  return nullptr;
}

Dataset load_dataset(const std::string& name_or_path, const DatasetOptions& options) {
  const auto& registry = Registry<DatasetRecord>::instance();
  if (const DatasetRecord* record = find_dataset(name_or_path)) {
    for (const auto& [given, option] :
         {std::pair{options.fill_missing, "--fill-missing"},
          std::pair{!options.missing_values.empty(), "--missing-values"},
          std::pair{!options.ignore.empty(), "--ignore"}})
      if (given)
        throw Error(option, fmt::format("is for tables, and {} is none", printable(name_or_path)),
                    "leave it out");
    DatasetOptions checked = options;
    if (!registry.find(name_or_path)) {
      Value& path = checked.arguments[record->path_option];
      if (!means_none(path))
        throw Error("dataset",
                    fmt::format("{} is named, and {} = {} too", printable(name_or_path),
                                record->path_option, printable(to_json(path))),
                    "leave one of them out");
      path = name_or_path;
    }
    checked.arguments = validate(checked.arguments, record->options, "dataset");
    return record->load(checked);
  }
  if (options.arguments.is_dict() && !options.arguments.as_dict().empty())
    throw Error("dataset",
                fmt::format("{} has no option '{}'", printable(name_or_path),
                            printable(options.arguments.as_dict().keys().front())),
                "tables have none of their own");
  if (ends_with(lower_case(name_or_path), ".toml")) return load_toml_dataset(name_or_path, options);
  if (is_array_file(name_or_path, options)) return load_array_file(name_or_path, options);
  std::error_code ignored;
  if (has_table_extension(name_or_path) || std::filesystem::exists(name_or_path, ignored))
    return load_table_file(name_or_path, options);
  throw Error("", fmt::format("unknown dataset '{}'", printable(name_or_path)),
              suggestion(name_or_path, registry.names()) +
                  " A table file (.csv, .arff, .npy, .npz, .h5), a .toml that describes one or a "
                  "folder of images also serves.");
}

}  // namespace mase
