// SPDX-License-Identifier: Apache-2.0
#include "mase/passes/rotation.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "mase/base/random.h"
#include "mase/ir/layer_text.h"
#include "mase/ir/op.h"
#include "mase/passes/calibration.h"

namespace mase {
namespace {

bool is_op(const Graph& graph, NodeId id, std::initializer_list<const char*> names) {
  const OpRecord* op = op_of(graph, graph.node(id));
  return op && std::any_of(names.begin(), names.end(),
                           [&](const char* name) { return op->name == name; });
}

// ---- matrices ----

Matrix product(const Matrix& a, int64_t rows, int64_t inner, const Matrix& b, int64_t columns) {
  Matrix out(static_cast<size_t>(rows * columns), 0.0);
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t k = 0; k < inner; ++k) {
      const double factor = a[static_cast<size_t>(r * inner + k)];
      if (factor == 0) continue;
      const double* from = b.data() + k * columns;
      double* to = out.data() + r * columns;
      for (int64_t c = 0; c < columns; ++c) to[c] += factor * from[c];
    }
  return out;
}

Matrix transposed_square(const Matrix& a, int64_t n) {
  Matrix out(a.size());
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < n; ++j)
      out[static_cast<size_t>(j * n + i)] = a[static_cast<size_t>(i * n + j)];
  return out;
}

// Gram and Schmidt over drawn rows, each twice, which leaves errors of a few units in the last
// place.
Matrix drawn_orthogonal(int64_t n, Random& random) {
  Matrix q(static_cast<size_t>(n * n));
  for (double& value : q) value = random.normal();
  for (int64_t i = 0; i < n; ++i) {
    double* row = q.data() + i * n;
    for (int again = 0; again < 2; ++again) {
      for (int64_t j = 0; j < i; ++j) {
        const double* other = q.data() + j * n;
        double dot = 0;
        for (int64_t c = 0; c < n; ++c) dot += row[c] * other[c];
        for (int64_t c = 0; c < n; ++c) row[c] -= dot * other[c];
      }
      double norm = 0;
      for (int64_t c = 0; c < n; ++c) norm += row[c] * row[c];
      norm = std::sqrt(norm);
      for (int64_t c = 0; c < n; ++c) row[c] /= norm;
    }
  }
  return q;
}

// u diag(1, r) u with the reflection u that turns (1, 0, ..) to (1, .., 1) / sqrt n.
Matrix drawn_around_mean(int64_t n, Random& random) {
  if (n == 1) return {1.0};
  const Matrix r = drawn_orthogonal(n - 1, random);
  Matrix middle(static_cast<size_t>(n * n), 0.0), u = middle;
  middle[0] = 1;
  for (int64_t i = 1; i < n; ++i)
    for (int64_t j = 1; j < n; ++j)
      middle[static_cast<size_t>(i * n + j)] = r[static_cast<size_t>((i - 1) * (n - 1) + j - 1)];
  std::vector<double> v(static_cast<size_t>(n), -1 / std::sqrt(static_cast<double>(n)));
  v[0] += 1;
  double square = 0;
  for (const double value : v) square += value * value;
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < n; ++j)
      u[static_cast<size_t>(i * n + j)] =
          (i == j ? 1.0 : 0.0) - 2 * v[static_cast<size_t>(i)] * v[static_cast<size_t>(j)] / square;
  return product(product(u, n, n, middle, n), n, n, u, n);
}

int sign_of_place(int64_t i, int64_t j) {
  return __builtin_popcountll(static_cast<uint64_t>(i & j)) % 2 ? -1 : 1;
}

// n a power of two.
Matrix drawn_hadamard(int64_t n, bool keeps_mean, Random& random) {
  std::vector<double> signs(static_cast<size_t>(n));
  for (double& sign : signs) sign = random.below(2) ? 1 : -1;
  Matrix q(static_cast<size_t>(n * n));
  const double scale = 1 / std::sqrt(static_cast<double>(n));
  if (!keeps_mean) {
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = 0; j < n; ++j)
        q[static_cast<size_t>(i * n + j)] =
            scale * sign_of_place(i, j) * signs[static_cast<size_t>(j)];
    return q;
  }
  // H diag(s) H / n: place (i, j) depends on i xor j only; the first column of H is the mean.
  signs[0] = 1;
  std::vector<double> spectrum(static_cast<size_t>(n), 0.0);
  for (int64_t d = 0; d < n; ++d)
    for (int64_t k = 0; k < n; ++k)
      spectrum[static_cast<size_t>(d)] += sign_of_place(d, k) * signs[static_cast<size_t>(k)];
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < n; ++j)
      q[static_cast<size_t>(i * n + j)] =
          spectrum[static_cast<size_t>(i ^ j)] / static_cast<double>(n);
  return q;
}

// ---- tensors times rotations ----

Matrix doubles_of(const Tensor& tensor) {
  const float* values = tensor.data<float>();
  return {values, values + tensor.numel()};
}

Tensor tensor_of(const Matrix& values, const Shape& shape) {
  Tensor tensor(shape);
  std::transform(values.begin(), values.end(), tensor.mutable_data<float>(),
                 [](double value) { return static_cast<float>(value); });
  return tensor;
}

// Every run of `n` values along the last dimension, taken as a row, times q.
Tensor rows_times(const Tensor& tensor, const Matrix& q, int64_t n) {
  return tensor_of(product(doubles_of(tensor), tensor.numel() / n, n, q, n), tensor.shape());
}

// q' times every run of `n` rows of a matrix (or values of a vector).
Tensor columns_times(const Tensor& tensor, const Matrix& q, int64_t n) {
  const int64_t columns = tensor.numel() / tensor.dim(0);
  const Matrix all = doubles_of(tensor), left = transposed_square(q, n);
  Matrix out;
  out.reserve(all.size());
  for (int64_t first = 0; first < tensor.dim(0); first += n) {
    const Matrix part(all.begin() + first * columns, all.begin() + (first + n) * columns);
    const Matrix turned = product(left, n, n, part, columns);
    out.insert(out.end(), turned.begin(), turned.end());
  }
  return tensor_of(out, tensor.shape());
}

// ---- finding streams ----

struct Dead {
  std::string why;
};

bool is_linear_module(const Graph& graph, NodeId id) {
  return graph.node(id).kind == NodeKind::call_module && is_op(graph, id, {"linear"});
}

bool is_norm(const Graph& graph, NodeId id) {
  if (!is_op(graph, id, {"rms_norm", "layer_norm"}) || graph.node(id).kind != NodeKind::call_module)
    return false;
  const Value& shape = graph.module_of(graph.node(id))->attributes["normalized_shape"];
  return shape.is_int() || shape.as_list().size() == 1;
}

// What lets a value through as it is.
bool passes_on(const Graph& graph, NodeId id) {
  return is_op(graph, id, {"dropout", "identity", "detach"});
}

// linear(x, table): the product with a tensor that a node reads.
bool is_head(const Graph& graph, NodeId id, NodeId x) {
  if (graph.node(id).kind != NodeKind::call_function || !is_op(graph, id, {"linear"})) return false;
  const std::vector<NodeId> inputs = graph.inputs_of(id);
  return inputs.size() == 2 && inputs[0] == x && inputs[1] != x &&
         graph.node(inputs[1]).kind == NodeKind::get_attr;
}

std::string given_scales(const Graph& graph, NodeId id) {
  const Module* module = graph.module_of(graph.node(id));
  if (module && !module->quantization.config["weight_step"].is_null())
    return fmt::format("the scales of {} are given already", graph.node(id).name);
  if (module && !module->masks.empty()) return fmt::format("{} is pruned", graph.node(id).name);
  return "";
}

class StreamFinder {
 public:
  StreamFinder(const Graph& graph, const std::vector<Shape>& shapes)
      : graph_(graph), shapes_(shapes), outputs_(graph.outputs()) {}

  // Everything that a value is added to or comes from. Dead: why it cannot be rotated.
  RotationStream grow(NodeId seed, std::set<NodeId>& seen) {
    RotationStream stream;
    stream.width = shapes_[static_cast<size_t>(seed)].back();
    waiting_ = {seed};
    std::set<NodeId> own;
    std::string why;
    while (!waiting_.empty()) {
      const NodeId value = waiting_.back();
      waiting_.pop_back();
      if (!own.insert(value).second) continue;
      seen.insert(value);
      try {
        made_by(value, stream);
        for (const NodeId user : graph_.users(value)) used_by(value, user, stream);
      } catch (const Dead& dead) {
        if (why.empty()) why = dead.why;
      }
    }
    for (std::vector<NodeId>* list :
         {&stream.layers, &stream.tables, &stream.norms, &stream.readers, &stream.heads}) {
      std::sort(list->begin(), list->end());
      list->erase(std::unique(list->begin(), list->end()), list->end());
    }
    if (why.empty()) why = whole(stream);
    if (!why.empty()) throw Dead{why};
    stream.name =
        graph_.node(stream.tables.empty() ? stream.layers.front() : stream.tables.front()).name;
    return stream;
  }

 private:
  void join(NodeId value) { waiting_.push_back(value); }
  const std::string& name(NodeId id) const { return graph_.node(id).name; }

  void made_by(NodeId id, RotationStream& stream) {
    const Node& node = graph_.node(id);
    if (std::count(outputs_.begin(), outputs_.end(), id))
      throw Dead{fmt::format("{} is an output", node.name)};
    if (is_op(graph_, id, {"add"}) && graph_.inputs_of(id).size() == 2) {
      for (const NodeId input : graph_.inputs_of(id)) {
        if (shapes_[static_cast<size_t>(input)].empty() ||
            shapes_[static_cast<size_t>(input)].back() != stream.width)
          throw Dead{fmt::format("{} is added in another size", name(input))};
        join(input);
      }
    } else if (passes_on(graph_, id)) {
      join(graph_.inputs_of(id).front());
    } else if (is_linear_module(graph_, id)) {
      stream.layers.push_back(id);
    } else if (node.kind == NodeKind::call_module && is_op(graph_, id, {"embedding"})) {
      stream.tables.push_back(id);
    } else if (node.kind == NodeKind::call_module && is_op(graph_, id, {"position_embedding"})) {
      stream.tables.push_back(id);
      join(graph_.inputs_of(id).front());
    } else if (node.kind == NodeKind::get_attr) {
      stream.tables.push_back(id);
    } else {
      throw Dead{fmt::format("{} writes into it", node.name)};
    }
  }

  void used_by(NodeId value, NodeId user, RotationStream& stream) {
    if ((is_op(graph_, user, {"add"}) && graph_.inputs_of(user).size() == 2) ||
        passes_on(graph_, user) || is_op(graph_, user, {"position_embedding"})) {
      join(user);
    } else if (is_norm(graph_, user)) {
      stream.norms.push_back(user);
      stream.takes_mean = stream.takes_mean || is_op(graph_, user, {"layer_norm"});
      for (const NodeId reader : graph_.users(user)) read_by(user, reader, stream);
      if (std::count(outputs_.begin(), outputs_.end(), user))
        throw Dead{fmt::format("{} is an output", name(user))};
    } else {
      read_by(value, user, stream);
    }
  }

  void read_by(NodeId value, NodeId reader, RotationStream& stream) {
    if (is_linear_module(graph_, reader))
      stream.readers.push_back(reader);
    else if (is_head(graph_, reader, value) && graph_.node(reader).quantization.active())
      throw Dead{fmt::format("{} has a number format: rotate before it gets one", name(reader))};
    else if (is_head(graph_, reader, value))
      stream.heads.push_back(reader);
    else
      throw Dead{fmt::format("{} reads it", name(reader))};
  }

  // Every layer once, no given scales, norms whose gains can be divided by.
  std::string whole(const RotationStream& stream) const {
    std::set<std::string> targets;
    for (const auto* list : {&stream.layers, &stream.readers, &stream.tables, &stream.norms})
      for (const NodeId id : *list) {
        const Node& node = graph_.node(id);
        if (node.kind == NodeKind::call_module) targets.insert(node.target);
        if (std::string why = given_scales(graph_, id); !why.empty()) return why;
        const auto calls =
            std::count_if(graph_.order().begin(), graph_.order().end(), [&](NodeId other) {
              return graph_.node(other).kind == node.kind &&
                     graph_.node(other).target == node.target;
            });
        if (calls > 1) return fmt::format("{} is used more than once", node.name);
      }
    if (stream.norms.empty()) return "no norm reads it";
    for (const NodeId id : graph_.order()) {
      if (graph_.node(id).kind != NodeKind::get_attr) continue;
      const auto owner = graph_.owner_of(graph_.node(id).target);
      if (!owner || !targets.count(owner->first)) continue;
      for (const NodeId user : graph_.users(id))
        if (!std::count(stream.heads.begin(), stream.heads.end(), user))
          return fmt::format("{} takes a table of it", name(user));
    }
    for (const NodeId id : stream.norms) {
      const Module& norm = *graph_.module_of(graph_.node(id));
      const Tensor *gain = norm.find("weight"), *shift = norm.find("bias");
      if (!gain || !shift) continue;
      double largest = 0, smallest = INFINITY;
      for (int64_t i = 0; i < gain->numel(); ++i) {
        largest = std::max(largest, std::fabs(double{gain->data<float>()[i]}));
        smallest = std::min(smallest, std::fabs(double{gain->data<float>()[i]}));
      }
      if (!(smallest > 1e-4 * largest)) return fmt::format("a gain of {} is nearly zero", name(id));
    }
    return "";
  }

  const Graph& graph_;
  const std::vector<Shape>& shapes_;
  std::vector<NodeId> outputs_, waiting_;
};

// ---- changing ----

void set_parameter(Graph& graph, NodeId id, const std::string& name, Tensor value) {
  *graph.module_of(graph.node(id))->find(name) = std::move(value);
}

// Columns times gains.
Tensor times_gains(Tensor weight, const std::vector<float>& gains) {
  float* values = weight.mutable_data<float>();
  const auto n = static_cast<int64_t>(gains.size());
  for (int64_t i = 0; i < weight.numel(); ++i)
    values[i] = static_cast<float>(double{values[i]} * gains[static_cast<size_t>(i % n)]);
  return weight;
}

std::string free_path(const Graph& graph, const std::string& wanted) {
  std::string path = wanted;
  for (int i = 1; graph.modules().count(path); ++i) path = fmt::format("{}_{}", wanted, i);
  return path;
}

// y = linear(x, table) as a layer with a weight of its own, in the same node.
void untie(Graph& graph, NodeId head) {
  const std::vector<NodeId> inputs = graph.inputs_of(head);
  const Tensor table = *graph.tensor(graph.node(inputs[1]).target);
  Module layer = make_module(
      "linear",
      validate(Value(Dict{
                   {"in_features", table.dim(1)}, {"out_features", table.dim(0)}, {"bias", false}}),
               find_op("linear").attributes, "head"),
      0, "head");
  *layer.find("weight") = table;
  const std::string path = free_path(graph, "lm_head");
  graph.modules()[path] = std::move(layer);
  Node& node = graph.node(head);
  node.kind = NodeKind::call_module;
  node.target = path;
  node.args = {Argument::node(inputs[0])};
  node.kwargs.clear();
  node.quantization = {};
  if (!graph.find(path)) node.name = path;
  if (graph.users(inputs[1]).empty()) graph.erase(inputs[1]);
  // The same network for another length is built from its config.
  if (Value* hf = graph.meta.find("hf"); hf && (*hf)["config"].is_dict())
    (*hf)["config"]["tie_word_embeddings"] = false;
}

}  // namespace

Matrix drawn_rotation(int64_t size, const RotationKind& kind, uint64_t seed,
                      const std::string& purpose, uint64_t index) {
  Random random(seed, purpose, index);
  const int64_t power = kind.hadamard ? size & -size : 1, rest = size / power;
  const Matrix odd = kind.keeps_mean ? drawn_around_mean(rest, random)
                     : rest > 1      ? drawn_orthogonal(rest, random)
                                     : Matrix{1.0};
  if (power == 1) return odd;
  const Matrix even = drawn_hadamard(power, kind.keeps_mean, random);
  if (rest == 1) return even;
  Matrix all(static_cast<size_t>(size * size));
  for (int64_t i = 0; i < size; ++i)
    for (int64_t j = 0; j < size; ++j)
      all[static_cast<size_t>(i * size + j)] =
          odd[static_cast<size_t>(i / power * rest + j / power)] *
          even[static_cast<size_t>(i % power * power + j % power)];
  return all;
}

std::vector<RotationStream> rotation_streams(const Graph& graph, Dict& left) {
  const std::vector<Shape> shapes = infer_shapes(graph, 1);
  std::vector<RotationStream> streams;
  std::set<NodeId> seen;
  for (const NodeId id : graph.order()) {
    if (!is_norm(graph, id)) continue;
    const NodeId seed = graph.inputs_of(id).front();
    if (seen.count(seed)) continue;
    if (graph.node(seed).kind == NodeKind::placeholder) {
      left.set(graph.node(id).name, "it takes the network's input");
      continue;
    }
    try {
      streams.push_back(StreamFinder(graph, shapes).grow(seed, seen));
    } catch (const Dead& dead) {
      left.set(graph.node(id).name, dead.why);
    }
  }
  return streams;
}

void rotate_stream(Graph& graph, const RotationStream& stream, const Matrix& rotation) {
  const int64_t n = stream.width;
  // Heads first: their tables are those that were.
  std::vector<NodeId> readers = stream.readers;
  for (const NodeId head : stream.heads) {
    untie(graph, head);
    readers.push_back(head);
  }
  for (const NodeId id : stream.norms) {
    Module& norm = *graph.module_of(graph.node(id));
    Tensor *gain = norm.find("weight"), *shift = norm.find("bias");
    if (!gain) continue;
    const std::vector<float> gains(gain->data<float>(), gain->data<float>() + n);
    for (const NodeId user : graph.users(id)) {
      Module& reader = *graph.module_of(graph.node(user));
      Tensor weight = times_gains(*reader.find("weight"), gains);
      *reader.find("weight") = std::move(weight);
    }
    if (shift) {
      Tensor divided = *shift;
      float* values = divided.mutable_data<float>();
      for (int64_t i = 0; i < n; ++i) values[i] /= gains[static_cast<size_t>(i)];
      *shift = rows_times(divided, rotation, n);
    }
    std::fill_n(gain->mutable_data<float>(), n, 1.0f);
  }
  for (const NodeId id : readers)
    set_parameter(graph, id, "weight",
                  rows_times(*graph.module_of(graph.node(id))->find("weight"), rotation, n));
  for (const NodeId id : stream.layers) {
    Module& layer = *graph.module_of(graph.node(id));
    *layer.find("weight") = columns_times(*layer.find("weight"), rotation, n);
    if (Tensor* bias = layer.find("bias")) *bias = rows_times(*bias, rotation, n);
  }
  for (const NodeId id : stream.tables) {
    const Node& node = graph.node(id);
    Tensor& table = node.kind == NodeKind::get_attr ? *graph.tensor(node.target)
                                                    : *graph.module_of(node)->find("weight");
    table = rows_times(table, rotation, n);
  }
}

std::vector<RotationHeads> rotation_heads(const Graph& graph, Dict& left) {
  const std::vector<Shape> shapes = infer_shapes(graph, 1);
  const std::vector<NodeId> outputs = graph.outputs();
  std::vector<RotationHeads> found;
  const auto moves = [&](NodeId id) {
    return is_op(graph, id,
                 {"reshape", "permute", "transpose", "flatten", "view", "contiguous", "dropout",
                  "identity"});
  };
  for (const NodeId id : graph.order()) {
    if (!is_op(graph, id, {"scaled_dot_product_attention"})) continue;
    RotationHeads heads{id};
    heads.width = shapes[static_cast<size_t>(id)].back();
    const std::vector<NodeId> inputs = graph.inputs_of(id);
    std::string why;
    NodeId at = inputs[2];
    const auto only_user = [&](NodeId value) {
      if (graph.users(value).size() != 1 || std::count(outputs.begin(), outputs.end(), value))
        why = fmt::format("{} is used elsewhere too", graph.node(value).name);
    };
    only_user(at);
    while (why.empty() && moves(at)) only_user(at = graph.inputs_of(at).front());
    heads.maker = at;
    at = id;
    while (why.empty()) {
      only_user(at);
      if (!why.empty()) break;
      at = graph.users(at).front();
      if (!moves(at)) break;
    }
    heads.taker = at;
    if (why.empty() && std::count(inputs.begin(), inputs.end(), inputs[2]) > 1)
      why = "keys and values are one";
    for (const NodeId layer : {heads.maker, heads.taker}) {
      if (!why.empty()) break;
      if (!is_linear_module(graph, layer))
        why = fmt::format("{} is no linear layer", graph.node(layer).name);
      else if (const std::string no = no_product_reason(graph, graph.node(layer)); !no.empty())
        why = fmt::format("{}: {}", graph.node(layer).name, no);
      else
        why = given_scales(graph, layer);
    }
    if (why.empty()) {
      const Tensor& made = *graph.module_of(graph.node(heads.maker))->find("weight");
      const Tensor& taken = *graph.module_of(graph.node(heads.taker))->find("weight");
      if (made.dim(0) % heads.width != 0 || taken.dim(1) % heads.width != 0)
        why = "its heads are no even parts";
    }
    if (why.empty())
      found.push_back(heads);
    else
      left.set(graph.node(id).name, why);
  }
  return found;
}

void rotate_heads(Graph& graph, const RotationHeads& heads, const Matrix& rotation) {
  Module& maker = *graph.module_of(graph.node(heads.maker));
  *maker.find("weight") = columns_times(*maker.find("weight"), rotation, heads.width);
  if (Tensor* bias = maker.find("bias")) *bias = rows_times(*bias, rotation, heads.width);
  Module& taker = *graph.module_of(graph.node(heads.taker));
  *taker.find("weight") = rows_times(*taker.find("weight"), rotation, heads.width);
}

}  // namespace mase
