// SPDX-License-Identifier: Apache-2.0
#include "mase/passes/calibration.h"

#include <algorithm>
#include <cmath>

#include "mase/base/fields.h"
#include "mase/engine/kernels/double_products.h"
#include "mase/ir/layer_text.h"
#include "mase/ir/op.h"
#include "mase/ops/windows.h"
#include "mase/passes/metadata.h"
#include "mase/passes/observe.h"

namespace mase {
namespace {

constexpr int64_t default_rows = 512, fewest_rows = 8;
constexpr int64_t most_columns = 16384;  // 2 GB of second moments
constexpr int64_t rows_in_piece = 64;

Windows convolution_windows(const Value& attributes, const Shape& weight) {
  Windows windows;
  windows.kernel.assign(weight.begin() + 2, weight.end());
  const size_t dims = windows.kernel.size();
  windows.stride = per_dimension(attributes["stride"], dims, "stride");
  windows.dilation = per_dimension(attributes["dilation"], dims, "dilation");
  const Value& padding = attributes["padding"];
  if (padding.is_string()) {
    for (size_t i = 0; i < dims; ++i) {
      const int64_t all =
          padding.as_string() == "same" ? windows.dilation[i] * (windows.kernel[i] - 1) : 0;
      windows.padding_before.push_back(all / 2);
      windows.padding_after.push_back(all - all / 2);
    }
  } else {
    windows.padding_before = per_dimension(padding, dims, "padding");
    windows.padding_after = windows.padding_before;
  }
  return windows;
}

// Adds vectors up, many at a time.
class Collector {
 public:
  Collector(int64_t groups, int64_t columns, int threads) : threads_(threads) {
    result_.groups = groups;
    result_.columns = columns;
    const auto n = static_cast<size_t>(columns);
    result_.hessians.assign(static_cast<size_t>(groups), Matrix(n * n, 0.0));
    for (std::vector<double>* sums : {&result_.mean, &result_.mean_magnitude, &result_.largest})
      sums->assign(static_cast<size_t>(groups) * n, 0.0);
    waiting_.resize(static_cast<size_t>(together * width()));
  }

  int64_t width() const { return result_.groups * result_.columns; }

  // One vector of all groups: [groups * columns], zeros.
  float* next() {
    if (count_ == together) flush();
    float* slot = waiting_.data() + count_++ * width();
    std::fill_n(slot, width(), 0.0f);
    return slot;
  }

  // Vectors that lie together.
  void add(const float* x, int64_t count) {
    const int64_t n = result_.columns;
    for (int64_t g = 0; g < result_.groups; ++g)
      kernels::multiply_doubles({.rows = n,
                                 .columns = n,
                                 .inner = count,
                                 .a = {.floats = x + g * n, .row = 1, .column = width()},
                                 .b = {.floats = x + g * n, .row = width(), .column = 1},
                                 .out = result_.hessians[static_cast<size_t>(g)].data(),
                                 .out_row = n,
                                 .accumulate = true,
                                 .upper = true},
                                threads_);
    for (int64_t v = 0; v < count; ++v)
      for (int64_t i = 0; i < width(); ++i) {
        const double value = x[v * width() + i], magnitude = std::fabs(value);
        const auto at = static_cast<size_t>(i);
        result_.mean[at] += value;
        result_.mean_magnitude[at] += magnitude;
        result_.largest[at] = std::max(result_.largest[at], magnitude);
      }
    result_.vectors += count;
  }

  ProductInputs finish() {
    flush();
    const double share = result_.vectors > 0 ? 1.0 / static_cast<double>(result_.vectors) : 0;
    const int64_t n = result_.columns;
    for (Matrix& hessian : result_.hessians)
      for (int64_t i = 0; i < n; ++i)
        for (int64_t j = i; j < n; ++j) {
          const double value = 2 * share * hessian[static_cast<size_t>(i * n + j)];
          hessian[static_cast<size_t>(i * n + j)] = value;
          hessian[static_cast<size_t>(j * n + i)] = value;
        }
    for (double& value : result_.mean) value *= share;
    for (double& value : result_.mean_magnitude) value *= share;
    return std::move(result_);
  }

 private:
  static constexpr int64_t together = 128;

  void flush() {
    if (count_ > 0) add(waiting_.data(), count_);
    count_ = 0;
  }

  ProductInputs result_;
  std::vector<float> waiting_;
  int64_t count_ = 0;
  int threads_ = 1;
};

// One input of layers that multiply it alike.
struct Watched {
  std::vector<NodeId> nodes;
  NodeId source = -1;
  const Module* module = nullptr;
  Shape weight, out;
  int64_t every = 1, at = 0;  // of all vectors, every so many-th
  Collector collector;
};

bool is_convolution(const Shape& weight) { return weight.size() > 2; }

void add_rows(Watched& layer, const Tensor& x) {
  const float* values = x.data<float>();
  const int64_t columns = layer.weight[1], vectors = x.numel() / std::max<int64_t>(1, columns);
  if (layer.every == 1) return layer.collector.add(values, vectors);
  for (int64_t v = 0; v < vectors; ++v)
    if (layer.at++ % layer.every == 0)
      std::copy_n(values + v * columns, columns, layer.collector.next());
}

void add_windows(Watched& layer, const Tensor& x) {
  const Value& attributes = layer.module->attributes;
  Shape one_in = x.shape(), one_out = layer.out;
  const int64_t rows = one_in[0];
  one_in[0] = one_out[0] = 1;
  const WindowPlane plane(convolution_windows(attributes, layer.weight), one_in, one_out,
                          padding_mode_of(attributes["padding_mode"].as_string()));
  const int64_t channels = one_in[1], taps = plane.taps(), results = plane.results();
  // The places of one window: the same for all rows.
  std::vector<std::vector<std::pair<size_t, size_t>>> places(static_cast<size_t>(results));
  plane.each([&](size_t result, size_t tap, size_t at) { places[result].emplace_back(tap, at); });
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t result = 0; result < results; ++result) {
      if (layer.at++ % layer.every != 0) continue;
      float* to = layer.collector.next();
      for (int64_t c = 0; c < channels; ++c) {
        const float* values = x.data<float>() + (row * channels + c) * plane.positions();
        for (const auto& [tap, at] : places[static_cast<size_t>(result)])
          to[static_cast<size_t>(c * taps) + tap] = values[at];
      }
    }
}

}  // namespace

std::vector<Field> calibration_fields() {
  return {integer_field(
              "rows", "training rows the method sees; 512, or half of what there is, if not given")
              .between(fewest_rows, 1e7),
          integer_field("heldout_rows",
                        "further training rows that only judge the result; as many if not given")
              .between(1, 1e7)};
}

Value CalibrationRows::record() const {
  return Dict{{"rows", seen.at(0).dim(0)},
              {"heldout_rows", heldout.at(0).dim(0)},
              {"split", drawn ? "drawn at random: no data were given" : "train"}};
}

CalibrationRows calibration_rows(const Graph& graph, const Value& args,
                                 const PassContext& context) {
  CalibrationRows result;
  result.drawn = !has_samples(graph, context);
  const int64_t there = result.drawn ? 2 * default_rows : context.samples.dim(0);
  const auto asked = [&](const char* key, int64_t otherwise) {
    return args[key].is_null() ? otherwise : args[key].as_int();
  };
  const int64_t seen = asked("rows", std::min(default_rows, there / 2));
  const int64_t heldout = asked("heldout_rows", std::min(seen, there - seen));
  if (seen < fewest_rows || heldout < 1 || (!result.drawn && seen + heldout > there))
    throw Error("rows",
                fmt::format("{} rows to calibrate on and {} held out, and the data have {}", seen,
                            heldout, there),
                fmt::format("give data of at least {} rows, or ask for fewer", fewest_rows + 1));
  const std::vector<Tensor> all = sample_inputs(graph, context, seen + heldout);
  for (const Tensor& tensor : all) {
    const Tensor numbers = tensor.to(DType::f32);  // tokens are whole numbers
    for (const float value : numbers.values<float>())
      if (!std::isfinite(value))
        throw Error("rows", "a calibration row has a value that is not finite",
                    "leave such rows out of the data");
    result.seen.push_back(rows_of(tensor, 0, seen));
    result.heldout.push_back(rows_of(tensor, seen, heldout));
  }
  return result;
}

std::vector<Tensor> few_rows(const std::vector<Tensor>& rows) {
  std::vector<Tensor> few;
  for (const Tensor& tensor : rows)
    few.push_back(rows_of(tensor, 0, std::min<int64_t>(32, tensor.dim(0))));
  return few;
}

std::string no_product_reason(const Graph& graph, const Node& node) {
  const OpRecord* op = op_of(graph, node);
  const Module* module = graph.module_of(node);
  if (!op || !module || !op->multiplies_weights()) return "it multiplies by no weight";
  if (!op->product) return "it has several products";
  if (op->product->out_axis != 0 || op->product->in_axis != 1)
    return "the rows of its weight are not its outputs";
  const Shape& weight = module->find(op->product->weight)->shape();
  if (weight.size() > 2 && op->product->channel_axis == -1) return "it is no convolution we know";
  if (element_count(weight) / std::max<int64_t>(1, weight[0]) > most_columns)
    return fmt::format("more than {} columns", most_columns);
  for (const NodeId other : graph.order())
    if (other != node.id && graph.node(other).kind == NodeKind::call_module &&
        graph.node(other).target == node.target)
      return "its layer is called more than once";
  return "";
}

namespace {

// Of convolutions the same windows, too.
bool multiplies_alike(const Watched& layer, NodeId source, const Module& module,
                      const Shape& weight) {
  if (layer.source != source ||
      !std::equal(weight.begin() + 1, weight.end(), layer.weight.begin() + 1, layer.weight.end()))
    return false;
  if (!is_convolution(weight)) return true;
  for (const char* key : {"stride", "padding", "dilation", "groups", "padding_mode"})
    if (!(module.attributes[key] == layer.module->attributes[key])) return false;
  return module.op == layer.module->op;
}

std::vector<Watched> watched_layers(const Graph& graph, const std::vector<NodeId>& nodes,
                                    int64_t rows, int64_t most_vectors, int threads) {
  const std::vector<Shape> shapes = infer_shapes(graph, 1);
  std::vector<Watched> layers;
  for (const NodeId id : nodes) {
    const Node& node = graph.node(id);
    const Module* module = graph.module_of(node);
    const ProductInfo& product = *op_of(graph, node)->product;
    const Shape& weight = module->find(product.weight)->shape();
    const NodeId source = graph.inputs_of(id).front();
    const auto same = std::find_if(layers.begin(), layers.end(), [&](const Watched& layer) {
      return multiplies_alike(layer, source, *module, weight);
    });
    if (same != layers.end()) {
      same->nodes.push_back(id);
      continue;
    }
    const int64_t groups = product.groups_attribute.empty()
                               ? 1
                               : module->attributes[product.groups_attribute].as_int();
    const int64_t columns = element_count(weight) / std::max<int64_t>(1, weight[0]);
    const Shape& out = shapes[static_cast<size_t>(id)];
    const int64_t each = element_count(out) / std::max<int64_t>(1, weight[0]);
    const int64_t all = each * rows;
    layers.push_back({{id},
                      source,
                      module,
                      weight,
                      out,
                      std::max<int64_t>(1, (all + most_vectors - 1) / most_vectors),
                      0,
                      Collector(groups, columns, threads)});
    // A stride that shares no factor with a row's positions visits all of them in turn.
    if (layers.back().every > 1 && each > 1) layers.back().every |= 1;
  }
  return layers;
}

void add_inputs(Watched& layer, const Tensor& x) {
  is_convolution(layer.weight) ? add_windows(layer, x) : add_rows(layer, x);
}

InputsOfNodes finished(std::vector<Watched>& layers) {
  InputsOfNodes found;
  for (Watched& layer : layers) {
    const auto inputs = std::make_shared<const ProductInputs>(layer.collector.finish());
    for (const NodeId id : layer.nodes) found.emplace(id, inputs);
  }
  return found;
}

}  // namespace

InputsOfNodes product_inputs(const Graph& graph, const std::vector<NodeId>& nodes,
                             const std::vector<Tensor>& rows, int64_t most_vectors, int threads) {
  std::vector<Watched> layers =
      watched_layers(graph, nodes, rows.at(0).dim(0), most_vectors, threads);
  std::vector<NodeId> sources;
  for (const Watched& layer : layers) sources.push_back(layer.source);
  observe_nodes(
      graph, rows, sources,
      [&](NodeId source, const Tensor& result) {
        const Tensor x = result.to(DType::f32);
        for (Watched& layer : layers)
          if (layer.source == source) add_inputs(layer, x);
      },
      256, threads);
  return finished(layers);
}

InputsOfNodes product_inputs(const Graph& graph, const std::vector<NodeId>& nodes,
                             LayerStream& stream) {
  const NodeId source = graph.inputs_of(nodes.at(0)).front();
  const Tensor* x = stream.result(graph, source);
  if (!x)
    return product_inputs(graph, nodes, stream.all_rows(), most_vectors_of_one, stream.threads());
  std::vector<Watched> layers =
      watched_layers(graph, nodes, stream.rows(), most_vectors_of_one, stream.threads());
  for (Watched& layer : layers) {
    MASE_CHECK(layer.source == source, "layers of several inputs");
    for (int64_t first = 0; first < stream.rows(); first += rows_in_piece)
      add_inputs(layer, rows_of(*x, first, std::min(rows_in_piece, stream.rows() - first)));
  }
  return finished(layers);
}

}  // namespace mase
