// SPDX-License-Identifier: Apache-2.0
// A batch as a program takes it: named, typed, sized tensors, and which of their rows are meant. It
// owns nothing, so that an epoch can go on filling in the same one. A program checks names, types,
// widths and row numbers once, before anything runs.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "mase/base/byte_scale.h"
#include "mase/base/tensor.h"

namespace mase {

// A row-major matrix somewhere else: `rows` rows of `width` values each.
struct RowTensor {
  std::string_view name = {};
  DType dtype = DType::f32;
  const void* data = nullptr;
  int64_t rows = 0, width = 0;
  const ByteScale* scale = nullptr;  // of bytes (uint8), which count as the float32 they stand for

  RowTensor() = default;
  // The tensor [rows, ...] must outlive this.
  RowTensor(const Tensor& tensor, std::string_view called = {})
      : name(called), dtype(tensor.dtype()), rows(tensor.shape().empty() ? 0 : tensor.shape()[0]) {
    if (tensor.numel() == 0) return;
    data = tensor.raw();
    width = tensor.numel() / rows;
  }
  RowTensor(std::span<const float> values, int64_t row_width, std::string_view called = {})
      : name(called),
        data(values.data()),
        rows(static_cast<int64_t>(values.size()) / row_width),
        width(row_width) {}
  RowTensor(std::span<const int32_t> classes, std::string_view called = {})
      : name(called),
        dtype(DType::i32),
        data(classes.data()),
        rows(static_cast<int64_t>(classes.size())),
        width(1) {}

  // Bytes; `numbers` null: they are floats after all.
  RowTensor(const Tensor& tensor, const ByteScale* numbers) : RowTensor(tensor) { scale = numbers; }

  bool empty() const { return !data; }
  const float* floats() const { return static_cast<const float*>(data); }
  const uint8_t* bytes() const { return static_cast<const uint8_t*>(data); }
  const int32_t* classes() const { return static_cast<const int32_t*>(data); }
};

struct Batch {
  // One for each placeholder: the one of its name, or the one without a name in its place.
  std::vector<RowTensor> inputs = {};
  RowTensor target = {};         // classes (int32) or numbers (float32); empty: there is none
  bool target_in_order = false;  // the target's rows are those of this batch, in its order
  std::span<const uint32_t> rows = {};  // the rows of this batch; empty: consecutive ones
  int64_t first_row = 0;                // of consecutive rows
  int64_t size = 0;                     // at most what the program was compiled for
  // One shard of a batch that several processes share: where in it this one begins, and how many
  // samples all of it has (0: this is all). Random draws depend on the position in the whole batch.
  int64_t first_sample = 0, whole_size = 0;
  uint64_t step = 0;  // counter of the random draws
  // The row numbers of the batch after this one, if known: its samples, spread over the memory, are
  // fetched into the cache while this one is computed.
  std::span<const uint32_t> upcoming = {};
};

}  // namespace mase
