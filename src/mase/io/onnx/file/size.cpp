// SPDX-License-Identifier: Apache-2.0
#include "mase/io/onnx/file/size.h"

#include <algorithm>
#include <numeric>

#include "mase/base/text.h"
#include "mase/ir/infer_dims.h"

namespace mase::onnx {
namespace {

[[noreturn]] void too_large() { throw Error("", "a size is larger than 64 bits hold"); }

int64_t size_sum(int64_t a, int64_t b) {
  int64_t result = 0;
  if (__builtin_add_overflow(a, b, &result)) too_large();
  return result;
}

int64_t size_product(int64_t a, int64_t b) {
  int64_t result = 0;
  if (__builtin_mul_overflow(a, b, &result)) too_large();
  return result;
}

}  // namespace

Size Size::of(int64_t batches, int64_t constant) {
  Size size(constant);
  size.batches = batches;
  return size;
}

int64_t Size::number() const {
  if (has_batch())
    throw BatchNeeded("", fmt::format("a size is {}, and a number is wanted", text()),
                      "ch predict takes the batch from the given inputs; elsewhere export the "
                      "model with a fixed batch");
  return constant;
}

std::string Size::text() const {
  if (!has_batch()) return std::to_string(constant);
  const std::string own = batches == 1 ? "batch" : fmt::format("{} * batch", batches);
  return constant == 0 ? own : fmt::format("{} + {}", own, constant);
}

Size sum_of(const Size& a, const Size& b) {
  return Size::of(size_sum(a.batches, b.batches), size_sum(a.constant, b.constant));
}

Size product_of(const Size& a, const Size& b) {
  if (a.has_batch() && b.has_batch())
    throw BatchNeeded("", fmt::format("{} times {} is wanted", a.text(), b.text()));
  const Size& symbolic = a.has_batch() ? a : b;
  const int64_t factor = (a.has_batch() ? b : a).constant;
  return Size::of(size_product(symbolic.batches, factor), size_product(symbolic.constant, factor));
}

std::optional<Size> quotient_of(const Size& a, const Size& b) {
  if (b.has_batch()) {
    // 6 N / 2 N
    if (b.constant != 0 || a.constant != 0 || a.batches % b.batches != 0) return {};
    return Size(a.batches / b.batches);
  }
  if (b.constant == 0 || b.constant == -1) return {};
  if (a.batches % b.constant != 0 || a.constant % b.constant != 0) return {};
  return Size::of(a.batches / b.constant, a.constant / b.constant);
}

std::optional<int> order_of(const Size& a, const Size& b) {
  int64_t batches = 0, constant = 0, first = 0;
  if (__builtin_sub_overflow(a.batches, b.batches, &batches) ||
      __builtin_sub_overflow(a.constant, b.constant, &constant) ||
      __builtin_add_overflow(batches, constant, &first))
    return {};
  // The difference of the smallest batch decides if it goes on that way.
  if (batches == 0) return constant < 0 ? -1 : constant > 0 ? 1 : 0;
  if (batches > 0 && first > 0) return 1;
  if (batches < 0 && first < 0) return -1;
  return {};
}

Shape Sizes::numbers() const {
  Shape shape;
  for (const Size& size : *this) shape.push_back(size.number());
  return shape;
}

bool Sizes::has_batch() const {
  return std::any_of(begin(), end(), [](const Size& size) { return size.has_batch(); });
}

Size element_count(const Sizes& sizes) {
  if (!sizes.has_batch()) return mase::element_count(sizes.numbers());
  Size count = 1;
  for (const Size& size : sizes) count = product_of(count, size);
  return count;
}

std::string shape_text(const Sizes& sizes) {
  std::vector<std::string> texts;
  for (const Size& size : sizes) texts.push_back(size.text());
  return fmt::format("[{}]", join(texts, ", "));
}

Sizes infer(const OpRecord& op, const Value& attributes, const std::vector<Sizes>& inputs) {
  const bool batched = std::any_of(inputs.begin(), inputs.end(),
                                   [](const Sizes& sizes) { return sizes.has_batch(); });
  if (!batched) {
    std::vector<Shape> shapes;
    for (const Sizes& sizes : inputs) shapes.push_back(sizes.numbers());
    return op.infer(attributes, shapes);
  }
  std::vector<std::vector<Dim>> dims(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i)
    for (const Size& size : inputs[i]) dims[i].push_back({size.batches, size.constant});
  const auto inferred = infer_dims(op, attributes, dims);
  if (!inferred) {
    std::vector<std::string> shapes;
    for (const Sizes& sizes : inputs) shapes.push_back(shape_text(sizes));
    throw BatchNeeded("", fmt::format("the shape that follows from {} depends on the batch in too "
                                      "involved a way",
                                      join(shapes, ", ")));
  }
  Sizes result;
  for (const Dim& dim : *inferred) result.push_back(Size::of(dim.batches, dim.constant));
  return result;
}

}  // namespace mase::onnx
