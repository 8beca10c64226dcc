// SPDX-License-Identifier: Apache-2.0
#include "mase/data/prepare.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "mase/data/legacy_random.h"

namespace mase {
namespace {

// Puts row order[i] at i, following the cycles of the permutation: one row of extra memory.
template <class T>
void reorder(T* items, size_t width, const std::vector<uint32_t>& order) {
  if (width == 0) return;
  std::vector<bool> done(order.size());
  std::vector<T> held(width);
  const size_t bytes = width * sizeof(T);
  for (size_t start = 0; start < order.size(); ++start) {
    if (done[start] || order[start] == start) continue;
    std::memcpy(held.data(), items + start * width, bytes);
    size_t to = start;
    while (true) {
      done[to] = true;
      const size_t from = order[to];
      if (from == start) break;
      std::memcpy(items + to * width, items + from * width, bytes);
      to = from;
    }
    std::memcpy(items + to * width, held.data(), bytes);
  }
}

// Mean and population deviation, as scikit-learn's StandardScaler: a column whose deviation is
// rounding noise counts as constant and keeps its scale.
void fit_standard(const float* x, int64_t rows, int64_t features, Preprocessing& fitted) {
  const auto width = static_cast<size_t>(features);
  const auto count = static_cast<double>(rows);
  std::vector<double> mean(width), variance(width);
  for (int64_t row = 0; row < rows; ++row)
    for (size_t i = 0; i < width; ++i) mean[i] += double{x[static_cast<size_t>(row) * width + i]};
  for (double& value : mean) value /= count;
  for (int64_t row = 0; row < rows; ++row)
    for (size_t i = 0; i < width; ++i) {
      const double off = double{x[static_cast<size_t>(row) * width + i]} - mean[i];
      variance[i] += off * off;
    }
  const double epsilon = std::numeric_limits<double>::epsilon();
  for (size_t i = 0; i < width; ++i) {
    variance[i] /= count;
    const double noise = count * epsilon * variance[i] + std::pow(count * mean[i] * epsilon, 2);
    fitted.offset[i] = static_cast<float>(mean[i]);
    fitted.scale[i] = variance[i] <= noise ? 1.0f : static_cast<float>(std::sqrt(variance[i]));
  }
}

void fit_range(const float* x, int64_t rows, int64_t features, Preprocessing& fitted) {
  const auto width = static_cast<size_t>(features);
  for (size_t i = 0; i < width; ++i) {
    float least = std::numeric_limits<float>::infinity(), most = -least;
    for (int64_t row = 0; row < rows; ++row) {
      const float value = x[static_cast<size_t>(row) * width + i];
      least = std::min(least, value);
      most = std::max(most, value);
    }
    fitted.offset[i] = least;
    fitted.scale[i] = most > least ? most - least : 1.0f;
  }
}

// All but a few outliers within [-1, 1]: rounding to few bits wastes no codes on rare values.
void fit_quantiles(const float* x, int64_t rows, int64_t features, Preprocessing& fitted) {
  constexpr double left_out = 0.002;  // on each side
  const auto width = static_cast<size_t>(features);
  std::vector<float> column(static_cast<size_t>(rows));
  const auto from_below = static_cast<size_t>(left_out * static_cast<double>(rows - 1));
  for (size_t i = 0; i < width; ++i) {
    for (size_t row = 0; row < column.size(); ++row) column[row] = x[row * width + i];
    std::sort(column.begin(), column.end());
    const auto low = static_cast<double>(column[from_below]),
               high = static_cast<double>(column[column.size() - 1 - from_below]);
    fitted.offset[i] = static_cast<float>((low + high) / 2);
    fitted.scale[i] = high > low ? static_cast<float>((high - low) / 2) : 1.0f;
    if (!(fitted.scale[i] > 0)) fitted.scale[i] = 1.0f;
  }
}

// The medians of columns without their missing values.
std::vector<float> medians(const float* x, int64_t rows, const FeatureNames& names,
                           const std::string& place) {
  const size_t width = names.size();
  std::vector<float> result(width), column;
  for (size_t i = 0; i < width; ++i) {
    column.clear();
    for (size_t row = 0; row < static_cast<size_t>(rows); ++row)
      if (!std::isnan(x[row * width + i])) column.push_back(x[row * width + i]);
    if (column.empty())
      throw Error(place,
                  fmt::format("column '{}' has no value in any training row", printable(names[i])),
                  "leave it out: --ignore");
    const auto middle = column.begin() + static_cast<std::ptrdiff_t>(column.size() / 2);
    std::nth_element(column.begin(), middle, column.end());
    result[i] = *middle;
    if (column.size() % 2 == 0)
      result[i] = static_cast<float>(
          (double{*middle} + double{*std::max_element(column.begin(), middle)}) / 2);
  }
  return result;
}

void fill_rows(float* x, int64_t rows, const std::vector<float>& fill) {
  const size_t width = fill.size();
  for (int64_t row = 0; row < rows; ++row, x += width)
    for (size_t i = 0; i < width; ++i)
      if (std::isnan(x[i])) x[i] = fill[i];
}

Preprocessing fit(const float* x, int64_t rows, const FeatureNames& names,
                  const std::string& scaling) {
  Preprocessing fitted;
  fitted.feature_names = names;
  fitted.offset.assign(names.size(), 0.0f);
  fitted.scale.assign(names.size(), 1.0f);
  const auto features = static_cast<int64_t>(names.size());
  if (scaling == "standardise")
    fit_standard(x, rows, features, fitted);
  else if (scaling == "min-max")
    fit_range(x, rows, features, fitted);
  else if (scaling == "quantile")
    fit_quantiles(x, rows, features, fitted);
  else if (scaling != "none")
    throw Error("scaling", fmt::format("unknown scaling '{}'", printable(scaling)),
                suggestion(scaling, {"standardise", "min-max", "quantile", "none"}));
  return fitted;
}

}  // namespace

std::vector<float> balanced_weights(std::span<const int32_t> labels, size_t classes) {
  std::vector<int64_t> count(classes);
  for (const int32_t label : labels) ++count[static_cast<size_t>(label)];
  std::vector<float> weights(classes, 1.0f);
  for (size_t i = 0; i < classes; ++i)
    if (count[i] > 0)
      weights[i] =
          static_cast<float>(static_cast<double>(labels.size()) /
                             (static_cast<double>(classes) * static_cast<double>(count[i])));
  return weights;
}

std::optional<double> validation_share(const std::string& text) {
  if (text == "train") return {};
  const auto share = parse_number(text);
  if (!share || !(*share > 0 && *share < 1))
    throw Error("--val-split", fmt::format("'{}' is neither a share nor 'train'", printable(text)),
                "give a share of the training rows such as 0.1, or 'train' to validate on them");
  return share;
}

void scale_rows(float* x, int64_t rows, const Preprocessing& preprocessing) {
  if (!preprocessing.fill.empty()) fill_rows(x, rows, preprocessing.fill);
  const size_t width = preprocessing.offset.size();
  const float* offset = preprocessing.offset.data();
  const float* scale = preprocessing.scale.data();
  for (int64_t row = 0; row < rows; ++row, x += width)
    for (size_t i = 0; i < width; ++i) x[i] = (x[i] - offset[i]) / scale[i];
}

void prepare(RawTable table, const DatasetOptions& options, const std::string& place,
             Dataset& dataset, int64_t given_test) {
  if (table.rows > int64_t{1} << 31)
    throw Error(place, fmt::format("{} rows are more than fit in memory", table.rows));
  const std::optional<double> share = validation_share(options.validation_split);
  SplitRows outer;
  if (given_test < 0) {
    outer = train_test_split(static_cast<uint32_t>(table.rows), test_share, split_seed);
  } else {
    for (int64_t row = 0; row < table.rows; ++row)
      (row < table.rows - given_test ? outer.first : outer.second)
          .push_back(static_cast<uint32_t>(row));
  }
  size_t train = outer.first.size(), validation = 0;
  std::vector<uint32_t> order = std::move(outer.first);
  if (share) {
    const SplitRows inner = train_test_split(static_cast<uint32_t>(train), *share, split_seed);
    std::vector<uint32_t> both;
    both.reserve(static_cast<size_t>(table.rows));
    for (const uint32_t row : inner.first) both.push_back(order[row]);
    for (const uint32_t row : inner.second) both.push_back(order[row]);
    order = std::move(both);
    train = inner.first.size();
    validation = inner.second.size();
  }
  if (train == 0 || outer.second.empty() || (share && validation == 0))
    throw Error(place, fmt::format("{} rows are too few to split", table.rows));
  order.insert(order.end(), outer.second.begin(), outer.second.end());

  const auto features = static_cast<size_t>(table.features());
  const size_t outputs = table.targets.size() / static_cast<size_t>(table.rows);
  reorder(table.data(), features, order);
  if (!table.labels.empty()) reorder(table.labels.data(), 1, order);
  if (!table.targets.empty()) reorder(table.targets.data(), outputs, order);

  if (options.apply) {
    if (options.apply->feature_names != table.feature_names)
      throw Error(place, "the columns differ from those the network was trained on");
    dataset.preprocessing = *options.apply;
  } else {
    std::vector<float> fill;
    if (options.fill_missing) {
      fill = medians(table.data(), static_cast<int64_t>(train), table.feature_names, place);
      fill_rows(table.data(), table.rows, fill);
    }
    dataset.preprocessing =
        fit(table.data(), static_cast<int64_t>(train), table.feature_names, options.scaling);
    dataset.preprocessing.fill = std::move(fill);
  }
  scale_rows(table.data(), table.rows, dataset.preprocessing);
  if (options.class_weighting == "balanced" && dataset.classification)
    dataset.class_weights =
        balanced_weights(std::span(table.labels).first(train), dataset.class_names.size());

  auto labels = std::make_shared<std::vector<int32_t>>(std::move(table.labels));
  auto targets = std::make_shared<std::vector<float>>(std::move(table.targets));
  const auto part = [&](size_t first, size_t rows) {
    const auto count = static_cast<int64_t>(rows);
    Split split;
    split.x = Tensor({count, table.features()}, DType::f32,
                     table.x.get() + first * features * sizeof(float), table.x);
    if (!labels->empty())
      split.labels = Tensor({count}, DType::i32,
                            reinterpret_cast<const std::byte*>(labels->data() + first), labels);
    if (!targets->empty())
      split.targets =
          Tensor({count, static_cast<int64_t>(outputs)}, DType::f32,
                 reinterpret_cast<const std::byte*>(targets->data() + first * outputs), targets);
    return split;
  };
  dataset.train = part(0, train);
  dataset.validation = share ? part(train, validation) : dataset.train;
  dataset.test = part(train + validation, outer.second.size());
}

}  // namespace mase
