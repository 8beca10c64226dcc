// SPDX-License-Identifier: Apache-2.0
#include "mase/train/tables/table_network.h"

#include <algorithm>
#include <cmath>

#include "mase/base/random.h"
#include "mase/ops/table_linear.h"

namespace mase {
namespace {

constexpr int most_width = 8;       // codes are bytes
constexpr float slope_reach = 2;    // codes on each side of a slope's chord
constexpr float least_count = 0.5;  // of a code that never came

int64_t padded(int64_t n) {
  const int64_t by = n > table_lanes::lane_pad ? 2 * table_lanes::lane_pad : table_lanes::lane_pad;
  return (n + by - 1) / by * by;
}

}  // namespace

TableNetwork::Splines::Splines(int64_t codes, int count) {
  for (int64_t code = 0; code < codes; ++code) {
    const double at = static_cast<double>(code) / static_cast<double>(codes - 1) * (count - 3);
    const int first = std::min(static_cast<int>(at), count - 4);
    const double t = at - first, s = 1 - t;
    const double weights[] = {s * s * s / 6, (3 * t * t * t - 6 * t * t + 4) / 6,
                              (3 * s * s * s - 6 * s * s + 4) / 6, t * t * t / 6};
    for (int k = 0; k < table_lanes::spline_terms; ++k) {
      index.push_back(first + k);
      weight.push_back(static_cast<float>(weights[k]));
    }
  }
}

TableNetwork::TableNetwork(const Graph& graph, uint64_t seed) : like_(graph) {
  for (const NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    if (node.kind == NodeKind::placeholder || node.kind == NodeKind::output) continue;
    const auto module = graph.modules().find(node.target);
    if (node.kind != NodeKind::call_module || module == graph.modules().end() ||
        module->second.op != "table_linear")
      throw Error(node.name, "is no layer of tables",
                  "learn the tables of networks of table_linear alone");
    const TableEdges edges(module->second.attributes);
    if (edges.input_width > most_width)
      throw Error(node.name, fmt::format("input_width is {}", edges.input_width),
                  fmt::format("take at most {}", most_width));
    if (!layers_.empty() && edges.in != layers_.back().out)
      throw Error(node.name, "is no layer of its neighbour", "put layers one after another");
    TableLayer layer;
    layer.path = node.target;
    layer.in = edges.in;
    layer.out = edges.out;
    layer.pad = padded(edges.out);
    layer.codes = edges.codes();
    layer.width = edges.input_width;
    layer.frac = edges.input_frac;
    layer.wraps = edges.wraps;
    Random random(seed, "tables." + layer.path);
    const double reach = 2.0 / std::sqrt(static_cast<double>(edges.in));
    layer.coarse.resize(static_cast<size_t>(layer.in * coarse_splines * layer.pad));
    layer.fine.assign(static_cast<size_t>(layer.in * fine_splines * layer.pad), 0.0f);
    for (int64_t i = 0; i < layer.in; ++i)
      for (int k = 0; k < coarse_splines; ++k)
        for (int64_t o = 0; o < layer.out; ++o)
          layer.coarse[static_cast<size_t>((i * coarse_splines + k) * layer.pad + o)] =
              static_cast<float>(reach * random.normal());
    layer.bias.assign(static_cast<size_t>(layer.pad), 0.0f);
    layer.bits.assign(static_cast<size_t>(layer.in * layer.out), layer.width);
    layer.fracs.assign(static_cast<size_t>(layer.in * layer.out), edges.output_frac);
    layer.counts.assign(static_cast<size_t>(layer.in * layer.codes), 1.0f);
    coarse_.emplace_back(layer.codes, coarse_splines);
    fine_.emplace_back(layer.codes, fine_splines);
    layers_.push_back(std::move(layer));
  }
  if (layers_.empty()) throw Error(graph.name, "has no layer of tables");
  derive();
}

void TableNetwork::derive() {
  // What nothing reads is not made.
  for (size_t l = layers_.size(); l-- > 0;) {
    TableLayer& layer = layers_[l];
    layer.live.clear();
    for (int64_t i = 0; i < layer.in; ++i) {
      bool read = false;
      for (int64_t o = 0; o < layer.out; ++o) read = read || layer.bits[layer.edge(i, o)] > 0;
      if (read) layer.live.push_back(static_cast<int>(i));
      if (read || l == 0) continue;
      TableLayer& before = layers_[l - 1];
      for (int64_t k = 0; k < before.in; ++k) before.bits[before.edge(k, i)] = 0;
    }
  }
  for (size_t l = 0; l < layers_.size(); ++l) {
    TableLayer& layer = layers_[l];
    const auto all = static_cast<size_t>(layer.in * layer.codes * layer.pad);
    layer.tables.assign(all, 0.0f);
    layer.slopes.resize(all);
    const auto pad = static_cast<size_t>(layer.pad);
    std::vector<float> values(static_cast<size_t>(layer.codes) * pad), mask(pad), up(pad),
        down(pad);
    for (const int i : layer.live) {
      const float* const coarse = layer.coarse.data() + i * coarse_splines * layer.pad;
      const float* const fine = layer.fine.data() + i * fine_splines * layer.pad;
      table_lanes::spline(coarse_[l].basis(), layer.codes, layer.pad, false, coarse, values.data());
      table_lanes::spline(fine_[l].basis(), layer.codes, layer.pad, true, fine, values.data());
      std::fill(up.begin(), up.end(), 1.0f);
      std::fill(down.begin(), down.end(), 1.0f);
      std::vector<char> present(static_cast<size_t>(layer.width) + 1, 0);
      for (int64_t o = 0; o < layer.out; ++o) {
        const size_t e = layer.edge(i, o);
        present[static_cast<size_t>(layer.bits[e])] = 1;
        up[static_cast<size_t>(o)] = std::ldexp(1.0f, layer.fracs[e]);
        down[static_cast<size_t>(o)] = std::ldexp(1.0f, -layer.fracs[e]);
      }
      for (int b = 1; b <= layer.width; ++b) {
        if (!present[static_cast<size_t>(b)]) continue;
        for (int64_t o = 0; o < layer.pad; ++o)
          mask[static_cast<size_t>(o)] = o < layer.out && layer.bits[layer.edge(i, o)] == b;
        table_lanes::add_cells(
            {layer.codes, layer.pad, layer.codes >> b, layer.counts.data() + i * layer.codes,
             mask.data(), up.data(), down.data()},
            values.data(), layer.tables.data() + i * layer.codes * layer.pad);
      }
      if (l == 0) continue;
      for (int64_t o = 0; o < layer.pad; ++o)
        mask[static_cast<size_t>(o)] = o < layer.out && layer.bits[layer.edge(i, o)] > 0;
      const auto reach = static_cast<int64_t>(slope_reach);
      for (int64_t code = 0; code < layer.codes; ++code) {
        const int64_t from = std::max<int64_t>(0, code - reach),
                      to = std::min(layer.codes - 1, code + reach);
        const float per = std::ldexp(1.0f, layer.frac) / static_cast<float>(to - from);
        float* const slope = layer.slopes.data() + (i * layer.codes + code) * layer.pad;
        for (int64_t o = 0; o < layer.pad; ++o)
          slope[o] = mask[static_cast<size_t>(o)] * per *
                     (values[static_cast<size_t>(to * layer.pad + o)] -
                      values[static_cast<size_t>(from * layer.pad + o)]);
      }
    }
    // A constant is as fine as the finest edge beside it, which carries it in the graph.
    layer.start.assign(pad, 0.0f);
    for (int64_t o = 0; o < layer.out; ++o) {
      int frac = 0;
      for (int64_t i = 0; i < layer.in; ++i)
        if (layer.bits[layer.edge(i, o)] > 0) frac = std::max(frac, layer.fracs[layer.edge(i, o)]);
      const auto at = static_cast<size_t>(o);
      layer.start[at] = std::ldexp(std::nearbyint(std::ldexp(layer.bias[at], frac)), -frac);
    }
  }
}

void TableNetwork::first_codes(const float* x, int64_t rows, uint8_t* codes) const {
  const TableLayer& layer = layers_.front();
  const TableEdges edges(like_.modules().at(layer.path).attributes);
  for (int64_t k = 0; k < rows * layer.in; ++k)
    codes[k] = static_cast<uint8_t>(edges.code_of(static_cast<double>(x[k])));
}

Graph TableNetwork::graph() const {
  Graph graph = like_;
  for (const TableLayer& layer : layers_) {
    Module& module = graph.modules().at(layer.path);
    Dict attributes = module.attributes.as_dict();
    attributes.set("knots", layer.codes);
    attributes.set("rounded", true);
    Module fresh = make_module("table_linear", attributes, 0, layer.path);
    float* const heights = fresh.find("heights")->mutable_data<float>();
    float* const bits = fresh.find("edge_bits")->mutable_data<float>();
    float* const fracs = fresh.find("edge_frac")->mutable_data<float>();
    for (int64_t o = 0; o < layer.out; ++o) {
      int64_t carrier = 0;
      for (int64_t i = 1; i < layer.in; ++i) {
        const auto frac = [&](int64_t k) {
          const size_t e = layer.edge(k, o);
          return layer.bits[e] > 0 ? layer.fracs[e] : 0;
        };
        if (frac(i) > frac(carrier)) carrier = i;
      }
      for (int64_t i = 0; i < layer.in; ++i) {
        const size_t e = layer.edge(i, o);
        const int64_t to = o * layer.in + i;
        const float constant = i == carrier ? layer.start[static_cast<size_t>(o)] : 0.0f;
        bits[to] = static_cast<float>(layer.bits[e]);
        fracs[to] = static_cast<float>(layer.bits[e] > 0 ? layer.fracs[e] : 0);
        for (int64_t code = 0; code < layer.codes; ++code)
          heights[to * layer.codes + code] =
              constant + (layer.bits[e] > 0 ? layer.entry(i, code, o) : 0.0f);
      }
    }
    module = std::move(fresh);
  }
  return graph;
}

TableRun::TableRun(const TableNetwork& network, int64_t rows)
    : own_codes_(network.layers().size()), codes_(network.layers().size(), nullptr) {
  for (size_t l = 0; l < network.layers().size(); ++l) {
    const TableLayer& layer = network.layers()[l];
    sums_.emplace_back(static_cast<size_t>(rows * layer.pad));
    if (l > 0) own_codes_[l].resize(static_cast<size_t>(rows * layer.in));
  }
}

const float* TableRun::forward(const TableNetwork& network, const uint8_t* codes, int64_t rows) {
  codes_[0] = codes;
  for (size_t l = 0; l < network.layers().size(); ++l) {
    const TableLayer& layer = network.layers()[l];
    float* const sums = sums_[l].data();
    table_lanes::add_entries(layer.shape(), layer.tables.data(), layer.start.data(), codes_[l],
                             rows, sums);
    if (l + 1 == network.layers().size()) break;
    const TableLayer& next = network.layers()[l + 1];
    const float up = std::ldexp(1.0f, next.frac);
    const auto half = static_cast<int>(next.codes / 2), last = static_cast<int>(next.codes - 1);
    uint8_t* const to = own_codes_[l + 1].data();
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t o = 0; o < layer.out; ++o) {
        // Sums are whole numbers of steps, or are rounded half up.
        const float scaled = std::clamp(sums[row * layer.pad + o] * up + 0.5f, -1e6f, 1e6f);
        const int whole =
            static_cast<int>(scaled) - (scaled < static_cast<float>(static_cast<int>(scaled)));
        const int code = whole + half;
        to[row * next.in + o] =
            static_cast<uint8_t>(next.wraps ? code & last : std::clamp(code, 0, last));
      }
    codes_[l + 1] = to;
  }
  return sums_.back().data();
}

}  // namespace mase
