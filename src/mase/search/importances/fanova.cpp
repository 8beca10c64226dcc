// SPDX-License-Identifier: Apache-2.0
// Functional analysis of variance (Hutter, Hoos and Leyton-Brown, 2014): a random forest of 64
// trees is fitted to the trials, and each parameter gets the share of the variance of a tree's
// prediction over the whole space that is left when all other parameters are averaged over.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "mase/base/random.h"
#include "mase/search/importances/importance.h"

namespace mase::fanova_importance {
namespace {

using namespace search;

constexpr int trees = 64, deepest = 64;
constexpr size_t most_rows = 2000;  // trials a forest is fitted to; more are thinned evenly

using Row = std::vector<double>;

struct Column {
  size_t parameter;
  int choice;  // of a categorical parameter: one column each; -1: a number
  double low, high;
};

struct Leaf {
  std::vector<std::pair<double, double>> box;
  double value;
};

class Tree {
 public:
  Tree(const std::vector<Row>& rows, const std::vector<double>& values,
       const std::vector<Column>& columns, Random& random)
      : rows_(rows), values_(values), splits_(columns.size()) {
    std::vector<size_t> sample(rows.size());
    for (size_t& i : sample) i = random.below(rows.size());
    std::vector<std::pair<double, double>> box;
    for (const Column& column : columns) box.emplace_back(column.low, column.high);
    grow(std::move(sample), std::move(box), 0, random);
    for (std::vector<double>& splits : splits_) {
      std::sort(splits.begin(), splits.end());
      splits.erase(std::unique(splits.begin(), splits.end()), splits.end());
    }
  }

  // The share of the variance that the columns of one parameter explain alone.
  double share(const std::vector<size_t>& of, const std::vector<Column>& columns) const {
    std::vector<double> values, weights;
    for (const Leaf& leaf : leaves_) {
      double volume = 1;
      for (const auto& [low, high] : leaf.box) volume *= high - low;
      values.push_back(leaf.value);
      weights.push_back(volume);
    }
    const double total = variance(values, weights);
    if (!(total > 0)) return -1;
    std::vector<Row> centres = {{}};
    std::vector<double> sizes = {1};
    for (const size_t c : of) {
      std::vector<double> edges = {columns[c].low};
      edges.insert(edges.end(), splits_[c].begin(), splits_[c].end());
      edges.push_back(columns[c].high);
      std::vector<Row> more;
      std::vector<double> more_sizes;
      for (size_t i = 0; i < centres.size(); ++i)
        for (size_t e = 0; e + 1 < edges.size(); ++e) {
          more.push_back(centres[i]);
          more.back().push_back((edges[e] + edges[e + 1]) / 2);
          more_sizes.push_back(sizes[i] * (edges[e + 1] - edges[e]));
        }
      centres = std::move(more);
      sizes = std::move(more_sizes);
    }
    std::vector<double> means;
    for (const Row& centre : centres) {
      double sum = 0, weight = 0;
      for (size_t l = 0; l < leaves_.size(); ++l) {
        double rest = weights[l];
        bool inside = true;
        for (size_t k = 0; k < of.size() && inside; ++k) {
          const auto& [low, high] = leaves_[l].box[of[k]];
          inside = centre[k] > low && centre[k] <= high;
          rest /= high - low;
        }
        if (!inside) continue;
        sum += rest * values[l];
        weight += rest;
      }
      means.push_back(sum / weight);
    }
    return std::max(0.0, variance(means, sizes)) / total;
  }

 private:
  static double variance(const std::vector<double>& values, const std::vector<double>& weights) {
    double total = 0, mean = 0, sum = 0;
    for (size_t i = 0; i < values.size(); ++i) {
      total += weights[i];
      mean += weights[i] * values[i];
    }
    mean /= total;
    for (size_t i = 0; i < values.size(); ++i)
      sum += weights[i] * (values[i] - mean) * (values[i] - mean);
    return sum / total;
  }

  void grow(std::vector<size_t> sample, std::vector<std::pair<double, double>> box, int depth,
            Random& random) {
    double mean = 0;
    for (const size_t i : sample) mean += values_[i];
    mean /= static_cast<double>(sample.size());
    const bool same = std::all_of(sample.begin(), sample.end(),
                                  [&](size_t i) { return values_[i] == values_[sample.front()]; });
    size_t column = 0;
    double threshold = 0;
    if (depth >= deepest || sample.size() < 2 || same ||
        !best_split(sample, random, column, threshold)) {
      leaves_.push_back({std::move(box), mean});
      return;
    }
    splits_[column].push_back(threshold);
    std::vector<size_t> left, right;
    for (const size_t i : sample) (rows_[i][column] <= threshold ? left : right).push_back(i);
    auto left_box = box;
    left_box[column].second = threshold;
    box[column].first = threshold;
    grow(std::move(left), std::move(left_box), depth + 1, random);
    grow(std::move(right), std::move(box), depth + 1, random);
  }

  bool best_split(std::vector<size_t>& sample, Random& random, size_t& column,
                  double& threshold) const {
    double best = -1, sum = 0;
    for (const size_t i : sample) sum += values_[i];
    const auto n = static_cast<double>(sample.size());
    bool found = false;
    for (const uint32_t c : random.permutation(static_cast<uint32_t>(splits_.size()))) {
      std::sort(sample.begin(), sample.end(), [&](size_t a, size_t b) {
        return rows_[a][c] != rows_[b][c] ? rows_[a][c] < rows_[b][c] : a < b;
      });
      double left = 0;
      for (size_t i = 0; i + 1 < sample.size(); ++i) {
        left += values_[sample[i]];
        const double here = rows_[sample[i]][c], next = rows_[sample[i + 1]][c];
        if (!(here < next)) continue;
        const double count = static_cast<double>(i + 1);
        const double gain = left * left / count + (sum - left) * (sum - left) / (n - count);
        if (found && gain <= best) continue;
        found = true;
        best = gain;
        column = c;
        threshold = (here + next) / 2;
      }
    }
    return found;
  }

  const std::vector<Row>& rows_;
  const std::vector<double>& values_;
  std::vector<std::vector<double>> splits_;
  std::vector<Leaf> leaves_;
};

std::vector<double> evaluate(const Space& space, const std::vector<Point>& points,
                             const std::vector<double>& losses, uint64_t seed) {
  std::vector<Column> columns;
  std::vector<std::vector<size_t>> columns_of(space.dimensions());
  for (size_t i = 0; i < space.dimensions(); ++i) {
    const Distribution& d = space.parameters()[i].distribution;
    if (d.is_single()) continue;
    const int count = d.is_categorical() ? static_cast<int>(d.count()) : 1;
    for (int c = 0; c < count; ++c) {
      columns_of[i].push_back(columns.size());
      if (d.is_categorical())
        columns.push_back({i, c, 0, 1});
      else
        columns.push_back({i, -1, d.line_low(), d.line_high()});
    }
  }
  std::vector<Row> rows;
  std::vector<double> values;
  const size_t count = std::min(points.size(), most_rows);
  for (size_t k = 0; k < count; ++k) {
    const size_t p = k * points.size() / count;
    Row row;
    for (const Column& column : columns) {
      const Distribution& d = space.parameters()[column.parameter].distribution;
      const double value = points[p][column.parameter];
      // What does not exist in a trial lies in the middle: it must not matter there.
      if (std::isnan(value))
        row.push_back((column.low + column.high) / 2);
      else
        row.push_back(column.choice >= 0 ? (value == column.choice ? 1 : 0) : d.to_line(value));
    }
    rows.push_back(std::move(row));
    values.push_back(losses[p]);
  }
  std::vector<double> sums(space.dimensions(), 0.0);
  int counted = 0;
  for (int t = 0; t < trees; ++t) {
    Random random(seed, "search fanova", static_cast<uint64_t>(t));
    const Tree tree(rows, values, columns, random);
    bool useful = true;
    for (size_t i = 0; i < sums.size() && useful; ++i) {
      if (columns_of[i].empty()) continue;
      const double share = tree.share(columns_of[i], columns);
      useful = share >= 0;
      if (useful) sums[i] += share;
    }
    counted += useful;
  }
  for (double& sum : sums) sum /= std::max(1, counted);
  return sums;
}

const Register<ImportanceRecord> registered{{
    .name = "fanova",
    .summary = "share of the variance that a parameter explains alone, from a random forest",
    .evaluate = evaluate,
}};

}  // namespace
}  // namespace mase::fanova_importance
