// SPDX-License-Identifier: Apache-2.0
// Operators that move elements or change their shape. Files with a fixed batch name its size in the
// shapes they reshape to: it becomes -1, so that the network takes any batch.
#include <algorithm>
#include <numeric>

#include "mase/io/onnx/read/operator.h"
#include "mase/io/onnx/read/tensor_moves.h"

namespace mase::onnx::shape_operators {
namespace {

// The sizes a Reshape asks for, with 0 and -1 resolved.
Sizes resolved(const NodeContext& context, const Operand& x, std::vector<Size> wanted) {
  const bool keeps_zero = context.integer("allowzero", 0) != 0;
  for (size_t i = 0; i < wanted.size(); ++i)
    if (wanted[i] == 0 && !keeps_zero) {
      if (i >= x.rank()) context.fail("a size of 0 has no dimension to copy");
      wanted[i] = x.shape[i];
    }
  const Size count = element_count(x.shape);
  const auto try_shape = [&](const std::vector<Size>& given) -> std::optional<Sizes> {
    Sizes shape(given.begin(), given.end());
    const auto is_open = [](const Size& size) { return size == -1; };
    const auto open = std::find_if(shape.begin(), shape.end(), is_open);
    Size known = 1;
    for (const Size& size : shape) {
      if (size.has_batch() ? size.batches < 1 : size.constant < -1) return {};
      if (!is_open(size)) known = product_of(known, size);
    }
    if (open != shape.end()) {
      if (std::count_if(shape.begin(), shape.end(), is_open) > 1) return {};
      const auto rest = quotient_of(count, known);
      if (!rest) return {};
      *open = *rest;
      known = product_of(known, *rest);
    }
    if (known != count) return {};
    return shape;
  };
  if (const auto fits = try_shape(wanted)) {
    // A size that happens to be the batch: [16, -1] of [batch, 16, 2] is no [16, batch * 2].
    const bool moved = !fits->empty() && x.rank() > 0 && x.shape[0].is_batch() &&
                       fits->front() == context.fixed_batch() && context.fixed_batch() > 0 &&
                       std::find(wanted.begin(), wanted.end(), Size(-1)) != wanted.end();
    if (!moved) return *fits;
  }
  // The file's own batch, or a multiple of it, stands somewhere: the first place that fits.
  if (context.fixed_batch() > 0)
    for (size_t i = 0; i < wanted.size(); ++i) {
      if (wanted[i].has_batch() || wanted[i].constant <= 0) continue;
      if (wanted[i].constant % context.fixed_batch() != 0) continue;
      std::vector<Size> shape = wanted;
      shape[i] = Size::of(wanted[i].constant / context.fixed_batch(), 0);
      if (const auto fits = try_shape(shape)) return *fits;
    }
  const std::string cause = fmt::format("shape {} cannot become {}", shape_text(x.shape),
                                        shape_text(Sizes(wanted.begin(), wanted.end())));
  if (x.shape.has_batch()) context.needs_batch(cause);
  context.fail(cause);
}

void reshape(NodeContext& context) {
  const Operand& x = context.input(0);
  std::vector<Size> wanted;
  if (context.has_attribute("shape")) {
    const std::vector<int64_t> listed = context.integer_list("shape");
    wanted.assign(listed.begin(), listed.end());
  } else if (context.has(1)) {
    wanted = context.sizes(1, "shape");
  } else {
    context.fail("no shape is given");
  }
  context.result(0, context.reshape(x, resolved(context, x, wanted)));
}

void flatten(NodeContext& context) {
  const Operand& x = context.input(0);
  const int64_t given = context.integer("axis", 1);
  const int64_t axis =
      given == static_cast<int64_t>(x.rank()) ? given : context.checked_axis(given, x.rank());
  if (axis == 1 && x.rank() > 1 && !x.is_constant())
    return context.result(0, context.call("flatten", {x}, Dict{{"start_dim", 1}}));
  const Sizes before(x.shape.begin(), x.shape.begin() + axis),
      after(x.shape.begin() + axis, x.shape.end());
  context.result(0, context.reshape(x, {element_count(before), element_count(after)}));
}

void transpose(NodeContext& context) {
  const Operand& x = context.input(0);
  std::vector<int64_t> reversed(x.rank());
  for (size_t i = 0; i < x.rank(); ++i) reversed[i] = static_cast<int64_t>(x.rank() - 1 - i);
  const std::vector<int64_t> order = context.integer_list("perm", reversed);
  std::vector<int64_t> sorted = order, all(x.rank());
  std::sort(sorted.begin(), sorted.end());
  std::iota(all.begin(), all.end(), 0);
  if (sorted != all) context.fail("perm is no order of the dimensions");
  if (!x.is_constant())
    return context.result(
        0, order == all ? x : context.call("permute", {x}, Dict{{"dims", Value::of(order)}}));
  context.model().budget->charge(x.constant->tensor.bytes(), context.place());
  Operand result = context.like(x, transposed(x.constant->tensor, order));
  if (x.format) result.format = permuted(*x.format, order, x.rank());
  context.result(0, result);
}

void squeeze(NodeContext& context) {
  const Operand& x = context.input(0);
  const auto axes = context.axes(1);
  std::vector<bool> gone(x.rank(), false);
  if (axes) {
    for (const int64_t axis : *axes)
      gone[static_cast<size_t>(context.checked_axis(axis, x.rank()))] = true;
  } else {
    for (size_t i = 0; i < x.rank(); ++i) gone[i] = x.shape[i] == 1;
  }
  Sizes shape;
  for (size_t i = 0; i < x.rank(); ++i) {
    if (!gone[i])
      shape.push_back(x.shape[i]);
    else if (x.shape[i].has_batch())
      context.needs_batch("the batch is taken for a dimension of 1");
    else if (x.shape[i] != 1)
      context.fail(fmt::format("dimension {} of {} is not 1", i, shape_text(x.shape)));
  }
  if (x.is_constant()) return context.result(0, context.reshape(x, shape));
  Operand result = x;
  for (size_t i = x.rank(); i-- > 0;)
    if (gone[i]) result = context.call("squeeze", {result}, Dict{{"dim", static_cast<int64_t>(i)}});
  result.element = x.element;
  context.result(0, result);
}

void unsqueeze(NodeContext& context) {
  const Operand& x = context.input(0);
  const auto axes = context.axes(1);
  if (!axes) context.fail("no axes are given");
  const size_t rank = x.rank() + axes->size();
  std::vector<int64_t> added;
  for (const int64_t axis : *axes) added.push_back(context.checked_axis(axis, rank));
  std::sort(added.begin(), added.end());
  Sizes shape = x.shape;
  for (const int64_t axis : added) {
    if (axis > static_cast<int64_t>(shape.size())) context.fail("an axis is listed twice");
    shape.insert(shape.begin() + axis, 1);
  }
  if (x.is_constant()) return context.result(0, context.reshape(x, shape));
  Operand result = x;
  for (const int64_t axis : added)
    result = context.call("unsqueeze", {result}, Dict{{"dim", axis}});
  result.element = x.element;
  context.result(0, result);
}

void concat(NodeContext& context) {
  std::vector<Operand> parts;
  for (size_t i = 0; i < context.input_count(); ++i) parts.push_back(context.input(i));
  if (parts.empty()) context.fail("it joins nothing");
  const int64_t axis = context.checked_axis(context.integer("axis", 0), parts[0].rank());
  // Pieces without elements add nothing.
  std::erase_if(parts, [&](const Operand& part) {
    return parts.size() > 1 && part.is_constant() && part.constant->tensor.numel() == 0;
  });
  if (parts.size() == 1) return context.result(0, parts[0]);
  // Constants among computed parts (a class token) are repeated for the batch.
  if (std::any_of(parts.begin(), parts.end(), [](auto& part) { return !part.is_constant(); }))
    for (Operand& part : parts) {
      const Element element = part.element;
      if (part.is_constant() &&
          (context.whole() || (axis > 0 && part.rank() > 0 &&
                               (part.shape[0] == 1 || part.shape[0] == context.fixed_batch()))))
        part = context.with_batch(part);
      part.element = element;
    }
  Operand result = context.call("cat", parts, Dict{{"dim", axis}});
  if (!result.is_constant()) result.element = parts[0].element;
  context.result(0, result);
}

void shape(NodeContext& context) {
  const Operand& x = context.value(0);
  const auto rank = static_cast<int64_t>(x.rank());
  const auto limit = [&](const char* name, int64_t fallback) {
    const int64_t at = context.integer(name, fallback);
    return std::clamp<int64_t>(at < 0 ? at + rank : at, 0, rank);
  };
  const int64_t start = limit("start", 0), end = limit("end", rank);
  std::vector<Size> sizes;
  for (int64_t i = start; i < end; ++i) sizes.push_back(x.shape[static_cast<size_t>(i)]);
  const auto count = static_cast<int64_t>(sizes.size());
  context.result(0, context.sizes_operand({count}, std::move(sizes), Element::i64));
}

void size_of(NodeContext& context) {
  const Operand& x = context.value(0);
  context.result(0, context.sizes_operand({}, {element_count(x.shape)}, Element::i64));
}

void same(NodeContext& context) { context.result(0, context.value(0)); }

void dropout(NodeContext& context) {
  const auto number = [&](size_t index, double fallback) {
    if (!context.has(index)) return fallback;
    const Operand& operand = context.input(index);
    if (!operand.is_constant() || operand.constant->tensor.numel() != 1)
      context.fail("its ratio or mode is computed while the network runs");
    return operand.constant->tensor.item();
  };
  if (number(2, 0) != 0 && number(1, 0.5) != 0)
    context.fail("the model was exported for training", "export it in evaluation mode");
  const Operand& x = context.input(0);
  context.result(0, x);
  if (context.output_is_used(1)) {
    if (!context.whole()) context.needs_batch("its mask is asked for");
    context.result(
        1, context.call("eq", {context.with_batch(context.zeros(x.shape)), context.scalar(0)}));
  }
}

// [N, C, H, W] with blocks of positions as channels, and back.
void between_depth_and_space(NodeContext& context, bool to_depth) {
  const Operand& x = context.input(0);
  const int64_t block = context.integer("blocksize", 0);
  if (x.rank() != 4 || block < 1 || block > (1 << 15))
    context.fail(fmt::format("blocks of {} in {}", block, shape_text(x.shape)));
  const Size n = x.shape[0];
  const int64_t c = x.shape[1], h = x.shape[2], w = x.shape[3];
  if (to_depth ? h % block != 0 || w % block != 0 : c % (block * block) != 0)
    context.fail(fmt::format("blocks of {} in {}", block, shape_text(x.shape)));
  const auto turned = [&](const Sizes& apart, const Shape& order, const Sizes& result) {
    const Operand split = context.reshape(x, apart);
    context.result(
        0, context.reshape(context.call("permute", {split}, Dict{{"dims", Value::of(order)}}),
                           result));
  };
  if (to_depth)
    return turned({n, c, h / block, block, w / block, block}, {0, 3, 5, 1, 2, 4},
                  {n, c * block * block, h / block, w / block});
  const int64_t left = c / (block * block);
  const Sizes result = {n, left, h * block, w * block};
  if (context.text("mode", "DCR") == "CRD")
    return turned({n, left, block, block, h, w}, {0, 1, 4, 2, 5, 3}, result);
  turned({n, block, block, left, h, w}, {0, 3, 4, 1, 5, 2}, result);
}

constexpr auto first = OnnxOperator::Linear::first;

const Register<OnnxOperator> operators[] = {
    Register<OnnxOperator>(
        {.name = "Reshape", .summary = "reshape", .linear = first, .convert = reshape}),
    Register<OnnxOperator>(
        {.name = "Flatten", .summary = "flatten", .linear = first, .convert = flatten}),
    Register<OnnxOperator>(
        {.name = "Transpose", .summary = "permute", .linear = first, .convert = transpose}),
    Register<OnnxOperator>(
        {.name = "Squeeze", .summary = "squeeze", .linear = first, .convert = squeeze}),
    Register<OnnxOperator>(
        {.name = "Unsqueeze", .summary = "unsqueeze", .linear = first, .convert = unsqueeze}),
    Register<OnnxOperator>({.name = "Concat",
                            .summary = "cat",
                            .linear = OnnxOperator::Linear::all,
                            .convert = concat}),
    Register<OnnxOperator>({.name = "Shape", .summary = "a constant", .convert = shape}),
    Register<OnnxOperator>({.name = "Size", .summary = "a constant", .convert = size_of}),
    Register<OnnxOperator>({.name = "Identity",
                            .summary = "nothing",
                            .repeated = OnnxOperator::Repeated::broadcasting,
                            .convert = same}),
    Register<OnnxOperator>(
        {.name = "Dropout", .summary = "nothing: the network is not training", .convert = dropout}),
    Register<OnnxOperator>(
        {.name = "DepthToSpace",
         .summary = "reshape and permute",
         .convert = [](NodeContext& context) { between_depth_and_space(context, false); }}),
    Register<OnnxOperator>(
        {.name = "SpaceToDepth",
         .summary = "reshape and permute",
         .convert = [](NodeContext& context) { between_depth_and_space(context, true); }}),
};

}  // namespace
}  // namespace mase::onnx::shape_operators
