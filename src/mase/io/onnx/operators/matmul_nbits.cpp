// SPDX-License-Identifier: Apache-2.0
// onnxruntime's product with a matrix of 2, 4 or 8-bit integers that have a scale for each block of
// a row: a Linear whose weight has these numbers and their format.
#include "mase/io/onnx/read/products.h"

namespace mase::onnx::matmul_nbits_operators {
namespace {

struct Packed {
  const std::byte* bytes;
  int bits;

  // Number `index` of those that begin at byte `start`, the lowest bits of a byte first.
  int at(int64_t start, int64_t index) const {
    const int64_t each = 8 / bits;
    const auto byte = std::to_integer<unsigned>(bytes[start + index / each]);
    return static_cast<int>(byte >> (index % each * bits) & ((1u << bits) - 1));
  }
};

struct Sizes {
  int64_t in, out, bits, block, blocks, bytes, zero_bytes;  // `bytes` of a block

  explicit Sizes(const NodeContext& context)
      : in(context.integer("K", 0)),
        out(context.integer("N", 0)),
        bits(context.integer("bits", 4)),
        block(context.integer("block_size", 0)) {
    constexpr int64_t most = int64_t{1} << 24;
    if (in < 1 || out < 1 || in > most || out > most || block < 1 || block > most ||
        (bits != 2 && bits != 4 && bits != 8) || block * bits % 8 != 0)
      context.fail(
          fmt::format("a matrix of {} x {} in blocks of {} with {} bits", out, in, block, bits));
    blocks = (in + block - 1) / block;
    bytes = block * bits / 8;
    zero_bytes = (blocks * bits + 7) / 8;
  }
};

const Tensor& sized(const NodeContext& context, size_t index, const char* what, int64_t count) {
  const Tensor& tensor = context.constant(index, what);
  if (tensor.numel() != count)
    context.fail(fmt::format("{} has {} numbers, wanted are {}", what, tensor.numel(), count));
  return tensor;
}

// One for each block of each row; the middle of the range if the file gives none.
std::vector<double> zero_points(const NodeContext& context, const Sizes& sizes) {
  std::vector<double> zeros(static_cast<size_t>(sizes.out * sizes.blocks),
                            static_cast<double>(int64_t{1} << (sizes.bits - 1)));
  if (!context.has(3)) return zeros;
  const bool packed = context.input(3).element == Element::u8;
  const Tensor& given =
      sized(context, 3, "its zero points", sizes.out * (packed ? sizes.zero_bytes : sizes.blocks));
  const Packed numbers{given.raw(), static_cast<int>(sizes.bits)};
  for (int64_t row = 0; row < sizes.out; ++row)
    for (int64_t k = 0; k < sizes.blocks; ++k)
      zeros[static_cast<size_t>(row * sizes.blocks + k)] =
          packed ? numbers.at(row * sizes.zero_bytes, k) : given.item(row * sizes.blocks + k);
  return zeros;
}

void matmul_nbits(NodeContext& context) {
  const Sizes sizes(context);
  if (context.has(4)) context.fail("its columns are in another order (g_idx)");
  const Tensor& codes = sized(context, 1, "its matrix", sizes.out * sizes.blocks * sizes.bytes);
  if (context.input(1).element != Element::u8) context.fail("its matrix holds no bytes");
  const Tensor scales = sized(context, 2, "its scales", sizes.out * sizes.blocks).to(DType::f32);
  const std::vector<double> zeros = zero_points(context, sizes);
  context.model().budget->charge(static_cast<size_t>(sizes.in * sizes.out) * sizeof(float),
                                 context.place());
  Tensor weight({sizes.out, sizes.in});
  const Packed numbers{codes.raw(), static_cast<int>(sizes.bits)};
  float* to = weight.mutable_data<float>();
  for (int64_t row = 0; row < sizes.out; ++row)
    for (int64_t i = 0; i < sizes.in; ++i) {
      const int64_t group = row * sizes.blocks + i / sizes.block;
      const auto zero = static_cast<float>(zeros[static_cast<size_t>(group)]);
      *to++ = (static_cast<float>(numbers.at(group * sizes.bytes, i % sizes.block)) - zero) *
              scales.data<float>()[group];
    }
  Operand matrix = context.constant_operand(weight);
  matrix.source = context.input(1).source;
  bool positive = sizes.in % sizes.block == 0;
  AffineFormat format{.width = static_cast<int>(sizes.bits),
                      .is_signed = false,
                      .scales = {},
                      .zeros = zeros,
                      .axis = 1,
                      .block = sizes.block,
                      .zero_first = false};
  for (int64_t i = 0; i < scales.numel(); ++i) {
    format.scales.push_back(scales.item(i));
    positive = positive && scales.item(i) > 0;
  }
  if (positive) matrix.format = affine_format(format);
  std::optional<Operand> bias;
  if (context.has(5)) {
    context.constant(5, "its bias");
    bias = context.input(5);
  }
  context.result(0, linear(context, context.input(0), matrix, bias ? &*bias : nullptr));
}

const Register<OnnxOperator> registered{
    {.name = "com.microsoft::MatMulNBits",
     .summary = "Linear with a weight of blocks of small integers",
     .convert = matmul_nbits}};

}  // namespace
}  // namespace mase::onnx::matmul_nbits_operators
