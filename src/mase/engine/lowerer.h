// SPDX-License-Identifier: Apache-2.0
// Graph => tensors and primitives: the engine's side of ir/lowering.h. Each primitive takes its
// operands in the layout it wants; where values must move for that, a relayout is placed.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "mase/engine/plan.h"

namespace mase::engine {

class Lowerer : public Lowering {
 public:
  explicit Lowerer(Plan& plan) : plan_(plan) {}
  void run();

  Shape shape(Slot slot) const override;
  bool training() const override { return plan_.options.training; }
  std::optional<Slot> parameter(const std::string& name) override;

  Slot rounded(Slot x, const std::string& operand) override;
  Slot map(const Expr& expr, const std::vector<Slot>& operands) override;
  Slot linear(Slot x, Slot weight, std::optional<Slot> bias) override;
  Slot matmul(Slot a, Slot b) override;
  Slot reduce(ReduceKind kind, Slot x, const std::vector<int64_t>& dims, bool keep_dims) override;
  Slot reshape(Slot x, const Shape& shape) override;
  Slot permute(Slot x, const std::vector<int64_t>& order) override;
  Slot concat(const std::vector<Slot>& parts, int64_t dim) override;
  Slot slice(Slot x, int64_t dim, int64_t start, int64_t step, int64_t count) override;
  Slot take(Slot table, Slot indices) override;
  Slot take_rows(Slot table, Slot indices,
                 int64_t untrained);  // a row that gets no gradient, or -1
  Slot convolution(Slot x, Slot weight, std::optional<Slot> bias,
                   const Convolution& options) override;
  Slot transposed_convolution(Slot x, Slot weight, std::optional<Slot> bias,
                              const Convolution& options, const Shape& positions) override;
  Slot pool(PoolKind kind, Slot x, const Windows& windows, bool count_padding,
            const Shape& positions) override;
  Slot batch_norm(Slot x, const BatchNorm& options) override;
  Slot layer_norm(Slot x, int64_t dims, std::optional<Slot> weight, std::optional<Slot> bias,
                  double eps) override;
  Slot softmax(Slot x, int64_t dim, bool logarithm) override;
  Slot dropout(Slot x, double probability) override;
  Slot constant(const Shape& shape, const std::vector<float>& values) override;
  Slot one_hot(Slot labels, int64_t classes) override;
  Slot batch_mean(Slot x, std::optional<Slot> weights) override;
  Slot cross_entropy(Slot logits, Slot labels, std::optional<Slot> class_weights) override;

  Slot primitive(const std::string& name, const Value& attributes,
                 const std::vector<Slot>& operands) override;

  // What primitives that lower themselves are built with.
  bool is(Slot slot, Layout layout) const { return slot >= 0 && plan_.at(slot).layout == layout; }
  bool is_batch(Slot slot) const { return is(slot, Layout::batch); }
  bool is_fixed(Slot slot) const { return is(slot, Layout::fixed); }
  bool known(Slot slot) const { return is_batch(slot) || is_fixed(slot); }
  const TensorInfo& info(Slot slot) const { return plan_.at(slot); }
  Slot add(const char* record, Primitive primitive, Shape shape, Layout layout, Axes axes = {});
  // The same values with other axes; a batch tensor of the result's shape.
  Slot relayout(Slot x, const Axes& axes);
  // Repeated along the lanes, so that it has this shape there; its rows stay as many.
  Slot spread(Slot x, const Shape& shape, const Axes& axes);
  const Node* node() const { return node_; }
  // The format of the node's operand; null: it has none.
  const Quantizer* format_of(const std::string& operand) const;
  Slot widened(Slot x);  // a packed parameter's floats; others as they are
  Slot flat(Slot x);     // with all features as rows; others as they are
  Slot view(Slot x, Shape shape, Axes axes);

 private:
  Slot quantized(Slot slot, const Quantization& quantization, const std::string& operand);
  // The formats of the products of the backward pass, if the node has such; the product then also
  // reads x as it was before it was rounded.
  const Quantization* round_backward(Primitive& product, Slot x, const Axes& axes);
  Axes product_axes(Slot x) const;  // its last dimension as rows, what else it has as lanes
  Slot lane_matmul(Slot a, Slot b, const Shape& shape);

  void add_parameters();
  Slot constant_of(const Node& node);
  void add_loss();
  void add_node(const Node& node, const Shape& shape, Layout layout);
  Slot call(std::shared_ptr<const BoundCall> bound, std::vector<Slot> inputs, const Shape& shape,
            Layout layout);

  Plan& plan_;
  std::map<std::string, int> parameters_;
  std::map<Slot, Slot> widened_;
  struct Rounded {
    const Quantizer* quantizer;
    int number;  // the learned one, or -1
    Slot result;
  };
  std::map<Slot, std::vector<Rounded>> quantized_;
  std::map<std::tuple<Slot, std::vector<int>, std::vector<int>>, Slot> moved_;
  uint64_t streams_ = 0;
  const Node* node_ = nullptr;
  const Module* module_ = nullptr;
  std::string path_;
  bool in_loss_ = false;
  bool rounds_backward_ = false;  // a product of this node does
};

}  // namespace mase::engine
