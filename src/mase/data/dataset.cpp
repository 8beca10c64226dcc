// SPDX-License-Identifier: Apache-2.0
#include "mase/data/dataset.h"

#include <filesystem>

#include "mase/data/described.h"
#include "mase/data/images.h"

namespace mase {

Shape Dataset::sample_shape() const {
  const Shape& shape = train.x.shape();
  return {shape.begin() + 1, shape.end()};
}

int64_t Dataset::outputs() const {
  return classification ? static_cast<int64_t>(class_names.size()) : train.targets.dim(-1);
}

Dataset load_dataset(const std::string& name_or_path, const DatasetOptions& options) {
  const auto& registry = Registry<DatasetRecord>::instance();
  if (const DatasetRecord* record = registry.find(name_or_path)) {
    DatasetOptions checked = options;
    checked.arguments = validate(options.arguments, record->options, "dataset");
    return record->load(checked);
  }
  if (options.arguments.is_dict() && !options.arguments.as_dict().empty())
    throw Error("dataset",
                fmt::format("{} has no option '{}'", printable(name_or_path),
                            printable(options.arguments.as_dict().keys().front())),
                "tables and folders have none of their own");
  if (is_image_folder(name_or_path)) return load_image_folder(name_or_path, options);
  if (ends_with(lower_case(name_or_path), ".toml")) return load_toml_dataset(name_or_path, options);
  std::error_code ignored;
  if (has_table_extension(name_or_path) || std::filesystem::exists(name_or_path, ignored))
    return load_table_file(name_or_path, options);
  throw Error("", fmt::format("unknown dataset '{}'", printable(name_or_path)),
              suggestion(name_or_path, registry.names()) +
                  " A table file (.csv, .arff, .npy, .npz, .h5), a .toml that describes one or a "
                  "folder of images also serves.");
}

}  // namespace mase
