// SPDX-License-Identifier: Apache-2.0
#include "mase/train/weightless/weightless_network.h"

#include <algorithm>
#include <cmath>

#include "mase/base/random.h"
#include "mase/ops/weightless.h"

namespace mase {

void WeightlessLayer::choose() {
  const int64_t columns = out * inputs;
  std::vector<float> most(static_cast<size_t>(columns), -INFINITY);
  wiring.assign(static_cast<size_t>(columns), 0);
  for (int64_t i = 0; i < in; ++i) {
    if (!usable[static_cast<size_t>(i)]) continue;
    const float* const row = choice.data() + i * columns;
    for (int64_t c = 0; c < columns; ++c)
      if (row[c] > most[static_cast<size_t>(c)]) {
        most[static_cast<size_t>(c)] = row[c];
        wiring[static_cast<size_t>(c)] = static_cast<int>(i);
      }
  }
}

void extended_differences(const float* entries, int inputs, float* differences) {
  constexpr float beta = 1.0f / 3;
  const int size = 1 << inputs;
  const float alpha = 0.5f * std::pow(0.75f, static_cast<float>(inputs - 1));
  std::vector<float> values(static_cast<size_t>(size));
  for (int j = 0; j < inputs; ++j) {
    for (int a = 0; a < size; ++a) values[static_cast<size_t>(a)] = alpha * entries[a];
    for (int i = 0; i < inputs; ++i)
      for (int a = 0; a < size; ++a) {
        if ((a >> i & 1) != 0) continue;
        float &low = values[static_cast<size_t>(a)],
              &high = values[static_cast<size_t>(a | 1 << i)];
        const float x = low, y = high;
        low = i == j ? y - x : x + beta * y;
        high = i == j ? y - x : y + beta * x;
      }
    for (int a = 0; a < size; ++a) differences[a * inputs + j] = values[static_cast<size_t>(a)];
  }
}

WeightlessNetwork::WeightlessNetwork(const Graph& graph, uint64_t seed) : like_(graph) {
  int64_t last = 0;
  for (const NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    if (node.kind == NodeKind::placeholder || node.kind == NodeKind::output) continue;
    const auto found = graph.modules().find(node.target);
    const Module* const module =
        node.kind == NodeKind::call_module && found != graph.modules().end() ? &found->second
                                                                             : nullptr;
    const std::string op = module ? module->op : "";
    if (thermometer_.empty() && (op == "flatten" || node.target == "flatten")) continue;
    if (op == "thermometer" && thermometer_.empty()) {
      const ThermometerShape shape(module->attributes);
      thermometer_ = node.target;
      features_ = shape.in;
      levels_ = shape.levels;
      last = shape.in * shape.levels;
      for (int64_t k = 0; k < last; ++k) thresholds_.push_back(module->find("thresholds")->item(k));
    } else if (op == "lut_layer" && !thermometer_.empty() && counts_.empty()) {
      const LutLayerShape shape(module->attributes);
      WeightlessLayer layer;
      layer.path = node.target;
      layer.in = shape.in;
      layer.out = shape.out;
      layer.inputs = shape.inputs;
      if (shape.in != last) throw Error(node.name, "is no layer of its neighbour");
      Random random(seed, "weightless." + layer.path);
      for (int64_t k = 0; k < layer.in * layer.out * layer.inputs; ++k)
        layer.choice.push_back(random.uniform_float());
      for (int64_t k = 0; k < layer.out * layer.size(); ++k)
        layer.entries.push_back(2 * random.uniform_float() - 1);
      layer.usable.assign(static_cast<size_t>(layer.in), 1);
      layer.choose();
      last = shape.out;
      layers_.push_back(std::move(layer));
    } else if (op == "group_sum" && !layers_.empty() && counts_.empty()) {
      const GroupSumShape shape(module->attributes);
      if (shape.in != last) throw Error(node.name, "is no layer of its neighbour");
      counts_ = node.target;
      classes_ = shape.groups;
    } else {
      throw Error(node.name, "is no part of a weightless network",
                  "make it of thermometer, lut_layer and group_sum, in this order");
    }
  }
  if (counts_.empty())
    throw Error(graph.name, "is no weightless network",
                "make it of thermometer, lut_layer and group_sum, in this order");
}

void WeightlessNetwork::fit_thresholds(const Split& rows) {
  if (levels_ < 2 || rows.rows() == 0) return;
  const Tensor x = rows.samples();
  std::vector<float> column(static_cast<size_t>(rows.rows()));
  for (int64_t i = 0; i < features_; ++i) {
    for (int64_t row = 0; row < rows.rows(); ++row)
      column[static_cast<size_t>(row)] = x.data<float>()[row * features_ + i];
    std::sort(column.begin(), column.end());
    for (int64_t level = 0; level < levels_; ++level)
      thresholds_[static_cast<size_t>(i * levels_ + level)] =
          static_cast<double>(column[column.size() * static_cast<size_t>(level + 1) /
                                     static_cast<size_t>(levels_ + 1)]);
  }
}

std::vector<uint8_t> WeightlessNetwork::bits_of(const Split& rows) const {
  const ThermometerShape shape(like_.modules().at(thermometer_).attributes);
  const Tensor x = rows.samples();
  std::vector<uint8_t> bits(static_cast<size_t>(rows.rows() * features_ * levels_));
  for (int64_t k = 0; k < rows.rows() * features_; ++k) {
    const double value = shape.value_of(shape.code_of(static_cast<double>(x.data<float>()[k])));
    for (int64_t level = 0; level < levels_; ++level)
      bits[static_cast<size_t>(k * levels_ + level)] =
          value >= thresholds_[static_cast<size_t>(k % features_ * levels_ + level)];
  }
  return bits;
}

Graph WeightlessNetwork::graph() const {
  Graph graph = like_;
  float* const thresholds =
      graph.modules().at(thermometer_).find("thresholds")->mutable_data<float>();
  for (size_t k = 0; k < thresholds_.size(); ++k)
    thresholds[k] = static_cast<float>(thresholds_[k]);
  for (const WeightlessLayer& layer : layers_) {
    Module& module = graph.modules().at(layer.path);
    float* const wiring = module.find("wiring")->mutable_data<float>();
    float* const entries = module.find("entries")->mutable_data<float>();
    for (size_t k = 0; k < layer.wiring.size(); ++k)
      wiring[k] = static_cast<float>(layer.wiring[k]);
    for (size_t k = 0; k < layer.entries.size(); ++k) entries[k] = layer.entries[k] > 0;
  }
  return graph;
}

}  // namespace mase
