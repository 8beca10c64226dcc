// SPDX-License-Identifier: Apache-2.0
// Classes go by their names, never by their numbers: a table may list them otherwise than the data
// a network was trained on.
#include <algorithm>

#include "mase/base/text.h"
#include "mase/data/dataset.h"

namespace mase {
namespace {

std::string class_list(const std::vector<std::string>& names) {
  std::vector<std::string> shown;
  for (const std::string& name : names) shown.push_back(printable(name));
  return join(shown, ", ");
}

}  // namespace

void order_classes(Dataset& dataset, const std::vector<std::string>& names,
                   const std::string& owner) {
  if (!dataset.classification || names.empty() || names == dataset.class_names) return;
  std::vector<int32_t> number(dataset.class_names.size());
  std::vector<float> weights(dataset.class_weights.empty() ? 0 : names.size(), 1.0f);
  for (size_t i = 0; i < number.size(); ++i) {
    const auto found = std::find(names.begin(), names.end(), dataset.class_names[i]);
    if (found == names.end())
      throw Error(dataset.name,
                  fmt::format("has the class '{}', {} knows {}", printable(dataset.class_names[i]),
                              owner, class_list(names)),
                  "use the data set it was trained on, or --load-partial to train it anew");
    number[i] = static_cast<int32_t>(found - names.begin());
    if (!weights.empty() && i < dataset.class_weights.size())
      weights[static_cast<size_t>(number[i])] = dataset.class_weights[i];
  }
  const bool one_tensor = dataset.validation.labels.raw() == dataset.train.labels.raw();
  const auto renumber = [&](Tensor& labels) {
    if (labels.numel() == 0) return;
    Tensor changed(labels.shape(), DType::i32);
    int32_t* out = changed.mutable_data<int32_t>();
    for (const int32_t label : labels.values<int32_t>()) {
      const bool known = label >= 0 && static_cast<size_t>(label) < number.size();
      *out++ = known ? number[static_cast<size_t>(label)] : label;  // wrong ones are found later
    }
    labels = std::move(changed);
  };
  renumber(dataset.train.labels);
  if (one_tensor)
    dataset.validation.labels = dataset.train.labels;  // --val-split train
  else
    renumber(dataset.validation.labels);
  renumber(dataset.test.labels);
  dataset.class_names = names;
  dataset.class_weights = std::move(weights);
}

}  // namespace mase
