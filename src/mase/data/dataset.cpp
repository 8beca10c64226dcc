// SPDX-License-Identifier: Apache-2.0
#include "mase/data/dataset.h"

namespace mase {

Shape Dataset::sample_shape() const {
  const Shape& shape = train.x.shape();
  return {shape.begin() + 1, shape.end()};
}

int64_t Dataset::outputs() const {
  return classification ? static_cast<int64_t>(class_names.size()) : train.targets.dim(-1);
}

Dataset load_dataset(const std::string& name_or_path, const DatasetOptions& options) {
  return Registry<DatasetRecord>::instance().get(name_or_path).load(options);
}

}  // namespace mase
