// SPDX-License-Identifier: Apache-2.0
// Parts of tensors: of ops with several results the one that is asked for, Python's indices, and
// tensors along a new dimension.
#include <algorithm>

#include "mase/io/onnx/write/writer.h"

namespace mase::onnx::part_writers {
namespace {

struct Range {
  int64_t axis, start, end, step = 1;
};

std::string sliced(WriteContext& c, const std::string& x, const std::vector<Range>& ranges) {
  std::vector<int64_t> starts, ends, axes, steps;
  for (const Range& range : ranges) {
    starts.push_back(range.start);
    ends.push_back(range.end);
    axes.push_back(range.axis);
    steps.push_back(range.step);
  }
  if (axes.empty()) return x;
  return c.add("Slice", {x, c.integers("starts", starts), c.integers("ends", ends),
                         c.integers("axes", axes), c.integers("steps", steps)});
}

int64_t axis_of(const WriteContext& c, size_t rank) {
  const int64_t dim = c["dim"].as_int();
  return dim < 0 ? dim + static_cast<int64_t>(rank) : dim;
}

// Piece number `result` of a dimension, whose pieces before it are this large in all.
void piece(WriteContext& c, int64_t before) {
  const int64_t axis = axis_of(c, c.input_shape(0).size());
  const int64_t length = c.shape()[static_cast<size_t>(axis)];
  c.result(sliced(c, c.input(0), {{axis, before, before + length}}));
}

void split(WriteContext& c) {
  const Value& sizes = c["split_size_or_sections"];
  const int64_t wanted = c["result"].as_int();
  int64_t before = 0;
  for (int64_t i = 0; i < wanted; ++i)
    before +=
        sizes.is_list() ? sizes.as_list().at(static_cast<size_t>(i)).as_int() : sizes.as_int();
  piece(c, before);
}

void chunk(WriteContext& c) {
  const Shape& x = c.input_shape(0);
  const int64_t size = x[static_cast<size_t>(axis_of(c, x.size()))], parts = c["chunks"].as_int();
  piece(c, c["result"].as_int() * ((size + parts - 1) / parts));
}

void top_k(WriteContext& c) {
  c.result(c.add("TopK", {c.input(0), c.integers("k", {c["k"].as_int()})},
                 {integer_attribute("axis", c["dim"].as_int()),
                  integer_attribute("largest", c["largest"].as_bool())},
                 "", static_cast<size_t>(c["result"].as_int()), 2));
}

void stack(WriteContext& c) {
  const size_t rank = c.shape().size();
  const int64_t axis = axis_of(c, rank);
  std::vector<std::string> rows;
  for (size_t i = 0; i < c.input_count(); ++i)
    rows.push_back(c.add("Unsqueeze", {c.input(i), c.integers("axis", {axis})}));
  c.result(c.add("Concat", rows, {integer_attribute("axis", axis)}));
}

bool is_word(const Value& entry, const char* word) {
  return (entry.is_string() && entry.as_string() == word) ||
         (entry.is_symbol() && entry.symbol() == word);
}

// Slices of the dimensions that are named, then the shape that is left.
void get_item(WriteContext& c) {
  const List entries = c["index"].is_list() ? c["index"].as_list() : List{c["index"]};
  const Shape& x = c.input_shape(0);
  const auto is_new = [](const Value& entry) { return entry.is_null() || is_word(entry, "None"); };
  const auto is_rest = [](const Value& entry) {
    return is_word(entry, "...") || is_word(entry, "Ellipsis");
  };
  size_t named = 0;
  for (const Value& entry : entries) named += !is_new(entry) && !is_rest(entry);
  std::vector<Range> ranges;
  int64_t axis = 0;
  for (const Value& entry : entries) {
    if (is_new(entry)) continue;
    if (is_rest(entry)) {
      axis += static_cast<int64_t>(x.size() - named);
      continue;
    }
    if (entry.is_int()) {
      const int64_t size = x[static_cast<size_t>(axis)];
      const int64_t at = entry.as_int() < 0 ? entry.as_int() + size : entry.as_int();
      ranges.push_back({axis, at, at + 1});
    } else {
      const List& slice = entry["slice"].as_list();
      constexpr int64_t to_the_end = INT64_MAX;
      const Range range{axis, slice[0].is_null() ? 0 : slice[0].as_int(),
                        slice[1].is_null() ? to_the_end : slice[1].as_int(),
                        slice[2].is_null() ? 1 : slice[2].as_int()};
      if (range.start != 0 || range.end != to_the_end || range.step != 1) ranges.push_back(range);
    }
    ++axis;
  }
  const std::string taken = sliced(c, c.input(0), ranges);
  c.result(c.add("Reshape", {taken, c.integers("shape", c.open_shape())}));
}

const Register<OnnxWriter> writers[] = {
    Register<OnnxWriter>({.name = "split", .write = split}),
    Register<OnnxWriter>({.name = "chunk", .write = chunk}),
    Register<OnnxWriter>({.name = "topk", .write = top_k}),
    Register<OnnxWriter>({.name = "stack", .write = stack}),
    Register<OnnxWriter>({.name = "getitem", .write = get_item}),
};

}  // namespace
}  // namespace mase::onnx::part_writers
