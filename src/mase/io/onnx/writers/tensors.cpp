// SPDX-License-Identifier: Apache-2.0
// Ops on shapes, reductions, products of two computed tensors.
#include <algorithm>

#include "mase/io/onnx/write/writer.h"

namespace mase::onnx::tensor_writers {
namespace {

void reshape(WriteContext& c) {
  c.result(c.add("Reshape", {c.input(0), c.integers("shape", c.open_shape())}));
}

void flatten(WriteContext& c) {
  const auto rank = static_cast<int64_t>(c.input_shape(0).size());
  const int64_t end = c["end_dim"].as_int();
  if (c["start_dim"].as_int() != 1 || (end != -1 && end != rank - 1)) return reshape(c);
  c.result(c.add("Flatten", {c.input(0)}, {integer_attribute("axis", 1)}));
}

void permute(WriteContext& c) {
  std::vector<int64_t> order = c["dims"].as_int_list("dims");
  for (int64_t& dim : order)
    if (dim < 0) dim += static_cast<int64_t>(order.size());
  c.result(c.add("Transpose", {c.input(0)}, {integers_attribute("perm", order)}));
}

void transpose(WriteContext& c) {
  const auto rank = static_cast<int64_t>(c.input_shape(0).size());
  std::vector<int64_t> order;
  for (int64_t i = 0; i < rank; ++i) order.push_back(i);
  const auto at = [&](const char* name) {
    const int64_t dim = c[name].as_int();
    return static_cast<size_t>(dim < 0 ? dim + rank : dim);
  };
  std::swap(order[at("dim0")], order[at("dim1")]);
  c.result(c.add("Transpose", {c.input(0)}, {integers_attribute("perm", order)}));
}

void cat(WriteContext& c) {
  std::vector<std::string> parts;
  for (size_t i = 0; i < c.input_count(); ++i) parts.push_back(c.input(i));
  c.result(c.add("Concat", parts, {integer_attribute("axis", c["dim"].as_int())}));
}

void narrow(WriteContext& c) {
  int64_t start = c["start"].as_int();
  const int64_t length = c["length"].as_int(), dim = c["dim"].as_int();
  const Shape& from = c.input_shape(0);
  if (start < 0)  // from the end, which an end of 0 would not say
    start += from[static_cast<size_t>(dim < 0 ? dim + static_cast<int64_t>(from.size()) : dim)];
  c.result(c.add("Slice", {c.input(0), c.integers("starts", {start}),
                           c.integers("ends", {start + length}), c.integers("axes", {dim})}));
}

void reduce(WriteContext& c, const char* op, int64_t axes_are_inputs) {
  std::vector<int64_t> axes;
  if (c["dim"].is_int()) axes = {c["dim"].as_int()};
  if (c["dim"].is_list()) axes = c["dim"].as_int_list("dim");
  std::vector<std::string> inputs = {c.input(0)};
  std::vector<Attribute> attributes = {
      integer_attribute("keepdims", c["keepdim"].is_bool() && c["keepdim"].as_bool())};
  if (!axes.empty() && c.operator_set() >= axes_are_inputs)
    inputs.push_back(c.integers("axes", axes));
  else if (!axes.empty())
    attributes.push_back(integers_attribute("axes", axes));
  c.result(c.add(op, inputs, attributes));
}

void softmax(WriteContext& c, const char* op) {
  if (!c["dim"].is_int()) c.fail("it has no dimension");
  c.result(c.add(op, {c.input(0)}, {integer_attribute("axis", c["dim"].as_int())}));
}

void matmul(WriteContext& c) { c.result(c.add("MatMul", {c.input(0), c.input(1)})); }

void index_select(WriteContext& c) {
  c.result(
      c.add("Gather", {c.input(0), c.input(1)}, {integer_attribute("axis", c["dim"].as_int())}));
}

void gather(WriteContext& c) {
  c.result(c.add("GatherElements", {c.input(0), c.input(1)},
                 {integer_attribute("axis", c["dim"].as_int())}));
}

void cumsum(WriteContext& c) {
  c.result(c.add("CumSum", {c.input(0), c.integers("axis", {c["dim"].as_int()})}));
}

void argmax(WriteContext& c) {
  if (!c["dim"].is_int()) c.fail("it has no dimension");
  c.result(c.add("ArgMax", {c.input(0)},
                 {integer_attribute("axis", c["dim"].as_int()),
                  integer_attribute("keepdims", c["keepdim"].as_bool())}));
}

// The largest value or the smallest, or along a dimension its place.
void extreme(WriteContext& c, const char* value, const char* place) {
  if (c["dim"].is_null() || c["result"].as_int() == 0) return reduce(c, value, 18);
  c.result(c.add(place, {c.input(0)},
                 {integer_attribute("axis", c["dim"].as_int()),
                  integer_attribute("keepdims", c["keepdim"].as_bool())}));
}

// Pairs from the last dimension backwards, as all beginnings and then all ends.
void pad(WriteContext& c) {
  const std::vector<int64_t> pairs = c["pad"].as_int_list("pad");
  const size_t rank = c.input_shape(0).size();
  std::vector<int64_t> pads(2 * rank, 0);
  for (size_t i = 0; i < pairs.size() / 2; ++i) {
    pads[rank - 1 - i] = pairs[2 * i];
    pads[2 * rank - 1 - i] = pairs[2 * i + 1];
  }
  const std::string mode = c["mode"].as_string();
  if (mode == "circular" && *std::min_element(pads.begin(), pads.end()) < 0)
    c.fail("padding from the other end of what is also cut");  // ONNX does not say what it means
  std::vector<Attribute> attributes;
  if (mode != "constant") attributes.push_back(text_attribute("mode", c.padding_mode(mode)));
  c.result(c.add("Pad", {c.input(0), c.integers("pads", pads), c.number(c["value"].as_double())},
                 attributes));
}

// The rows of the positions that are there, added.
void position_embedding(WriteContext& c) {
  const Shape& shape = c.input_shape(0);
  const int64_t length = shape[shape.size() - 2];
  const std::string table = c.parameter("weight");
  const std::string rows = c.add("Slice", {table, c.integers("starts", {0}),
                                           c.integers("ends", {length}), c.integers("axes", {0})});
  c.result(c.add("Add", {c.input(0), rows}));
}

const Register<OnnxWriter> writers[] = {
    Register<OnnxWriter>(
        {.name = "reshape", .aliases = {"squeeze", "unsqueeze"}, .write = reshape}),
    Register<OnnxWriter>({.name = "flatten", .write = flatten}),
    Register<OnnxWriter>({.name = "permute", .write = permute}),
    Register<OnnxWriter>({.name = "transpose", .write = transpose}),
    Register<OnnxWriter>({.name = "cat", .write = cat}),
    Register<OnnxWriter>({.name = "narrow", .write = narrow}),
    Register<OnnxWriter>(
        {.name = "mean", .write = [](WriteContext& c) { reduce(c, "ReduceMean", 18); }}),
    Register<OnnxWriter>(
        {.name = "sum", .write = [](WriteContext& c) { reduce(c, "ReduceSum", 13); }}),
    Register<OnnxWriter>(
        {.name = "softmax", .write = [](WriteContext& c) { softmax(c, "Softmax"); }}),
    Register<OnnxWriter>(
        {.name = "log_softmax", .write = [](WriteContext& c) { softmax(c, "LogSoftmax"); }}),
    Register<OnnxWriter>({.name = "matmul", .aliases = {"bmm"}, .write = matmul}),
    Register<OnnxWriter>({.name = "position_embedding", .write = position_embedding}),
    Register<OnnxWriter>({.name = "index_select", .write = index_select}),
    Register<OnnxWriter>({.name = "gather", .write = gather}),
    Register<OnnxWriter>({.name = "cumsum", .write = cumsum}),
    Register<OnnxWriter>({.name = "argmax", .write = argmax}),
    Register<OnnxWriter>(
        {.name = "max", .write = [](WriteContext& c) { extreme(c, "ReduceMax", "ArgMax"); }}),
    Register<OnnxWriter>(
        {.name = "min", .write = [](WriteContext& c) { extreme(c, "ReduceMin", "ArgMin"); }}),
    Register<OnnxWriter>({.name = "pad", .write = pad}),
};

}  // namespace
}  // namespace mase::onnx::tensor_writers
