// SPDX-License-Identifier: Apache-2.0
// Weights that stay packed: kernels against what the blocks mean, with steps that are no finite or
// no normal numbers, and networks with packed weights against the same ones widened.
#include "mase/engine/kernels/packed.h"

#include <cmath>
#include <cstring>

#include "instruction_sets.h"
#include "kernel_rows.h"
#include "mase/engine/program.h"
#include "mase/formats/ggml_blocks.h"
#include "mase/formats/packed_groups.h"
#include "mase/io/networks/checkpoint.h"
#include "mase/models/hf.h"
#include "mase/passes/pass.h"
#include "mase/run/language.h"
#include "mase/run/network.h"
#include "support/support.h"

namespace mase::packed_test {
namespace {

struct Blocks {
  PackedTypePtr type;
  int64_t out, in;
  std::vector<uint8_t> bytes;

  Blocks(PackedTypePtr given, int64_t rows, int64_t width, uint64_t seed, bool hostile)
      : type(std::move(given)), out(rows), in(width) {
    Random random(seed, "blocks");
    bytes.resize(static_cast<size_t>(out * in / type->values * type->bytes));
    draw_blocks(*type, random, 0.1, bytes);
    const uint16_t odd[] = {0, 0x8000, 1, 0x83FF, 0x7C00, 0xFC00, 0x7E00, 0x7BFF};
    for (size_t at = 0; at < bytes.size(); at += static_cast<size_t>(type->bytes))
      for (const int place : type->halves) {
        if (!hostile || random.below(4) > 0) continue;
        const uint16_t bits = odd[random.below(std::size(odd))];
        std::memcpy(bytes.data() + at + static_cast<size_t>(place), &bits, sizeof bits);
      }
  }
  kernels::PackedRows rows() const { return {type.get(), bytes.data(), in}; }
};

TEST(Packed, KernelsWidenEveryTypeToTheBit) {
  with_every_instruction_set([] {
    for (const PackedTypePtr& type : every_packed_type())
      for (const int64_t blocks : {1, 2, 5}) {
        const int64_t width = type->values > 1 ? blocks * type->values : 7 * blocks + 27;
        const Blocks given(type, 5, width, static_cast<uint64_t>(blocks), true);
        std::vector<float> got(static_cast<size_t>(3 * width)), wanted = got;
        kernels::packed_widen(given.rows(), 1, 3, got.data());
        kernels::reference::packed_widen(given.rows(), 1, 3, wanted.data());
        for (size_t i = 0; i < got.size(); ++i)
          ASSERT_TRUE(std::memcmp(&got[i], &wanted[i], sizeof(float)) == 0 ||
                      (std::isnan(got[i]) && std::isnan(wanted[i])))
              << type->name << " " << i << ": " << got[i] << " " << wanted[i];
      }
  });
}

TEST(Packed, DotProductsMatchTheirReference) {
  with_every_instruction_set([] {
    for (const PackedTypePtr& type : every_packed_type())
      for (const int64_t samples : {1, 3, 4, 9})
        for (const bool hostile : {false, true}) {
          const int64_t width = type->values > 1 ? 3 * type->values : 45, rows = 7,
                        length = kernels::packed_width(width), stride = samples + 2;
          const Blocks given(type, rows, width, 11, hostile);
          Random random(3, "samples");
          std::vector<float> x(static_cast<size_t>(samples * length), 0.0f), bias(rows);
          for (int64_t s = 0; s < samples; ++s)
            for (int64_t i = 0; i < width; ++i)
              x[static_cast<size_t>(s * length + i)] = static_cast<float>(random.uniform(-2, 2));
          for (float& value : bias) value = static_cast<float>(random.uniform(-2, 2));
          std::vector<float> got(static_cast<size_t>(rows * stride), 7.0f), wanted = got;
          std::vector<float> floats(static_cast<size_t>(rows * width));
          kernels::reference::packed_widen(given.rows(), 0, rows, floats.data());
          // What k roundings can make of a sum: k * 2^-24 of the sum of magnitudes. Vectors of four
          // lanes or more in two sums add an eighth of the products each, one after the other; then
          // come the product's own rounding, the two sums, at most 16 lanes, the bias, and the
          // reference's result; one more for the roundings of roundings.
          const auto bound = [&](int64_t o, int64_t s) {
            double sum = static_cast<double>(std::fabs(bias[static_cast<size_t>(o)]));
            for (int64_t i = 0; i < width; ++i)
              sum += std::fabs(static_cast<double>(floats[static_cast<size_t>(o * width + i)]) *
                               static_cast<double>(x[static_cast<size_t>(s * length + i)]));
            const auto roundings = static_cast<double>(length / 8 + 1 + 1 + 4 + 1 + 1 + 1);
            return roundings * 0x1p-24 * sum;
          };
          for (const bool relu : {false, true}) {
            const float* b = relu ? bias.data() : nullptr;
            kernels::packed_dots(given.rows(), 1, rows - 1, x.data(), samples, b, relu, got.data(),
                                 stride);
            kernels::reference::packed_dots(given.rows(), 1, rows - 1, x.data(), samples, b, relu,
                                            wanted.data(), stride);
            for (size_t i = 0; i < got.size(); ++i) {
              if (hostile && !std::isfinite(wanted[i])) {
                ASSERT_FALSE(std::isfinite(got[i])) << type->name << " " << i;
              } else if (!hostile) {
                const auto row = static_cast<int64_t>(i) / stride,
                           column = static_cast<int64_t>(i) % stride;
                ASSERT_NEAR(got[i], wanted[i], column < samples ? bound(row, column) : 0)
                    << type->name << " " << i;
              }
            }
          }
        }
  });
}

// The network of a folder whose matrices are drawn blocks of this type, or the floats they mean.
Graph network_of(const PackedTypePtr& type, bool packed) {
  Graph graph = graph_of_file(test::golden_path("language/llama_sharded"));
  uint64_t seed = 0;
  for (const std::string& path : graph.module_order())
    for (auto& [name, value] : graph.modules().at(path).parameters) {
      if (value.shape().size() != 2 || value.dim(1) % type->values != 0) continue;
      const auto blocks = std::make_shared<Blocks>(type, value.dim(0), value.dim(1), ++seed, false);
      const Tensor held(value.shape(), type,
                        reinterpret_cast<const std::byte*>(blocks->bytes.data()), blocks);
      value = packed ? held : held.to(DType::f32);
    }
  return graph;
}

double farthest(const std::vector<float>& a, const std::vector<float>& b) {
  double most = 1, worst = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    most = std::max(most, std::fabs(double{b[i]}));
    worst = std::max(worst, std::fabs(double{a[i]} - double{b[i]}));
  }
  return worst / most;
}

TEST(Packed, NetworksComputeWhatTheirWidenedWeightsWould) {
  for (const uint32_t number : {2u, 3u, 8u, 30u}) {  // Q4_0, Q4_1, Q8_0, BF16
    const PackedTypePtr type = packed_type(*find_gguf_type(number));
    const Graph packed = network_of(type, true), wide = network_of(type, false);
    Tensor ids({1, 40}, DType::i64);
    for (int64_t i = 0; i < 40; ++i) ids.mutable_data<int64_t>()[i] = (7 * i + 3) % 257;
    for (const int64_t length : {5, 40}) {  // dot products, panels
      Tensor some({1, length}, DType::i64);
      std::copy_n(ids.data<int64_t>(), length, some.mutable_data<int64_t>());
      const HfOptions options{.shapes = {{length}}};
      const Tensor got = run(resized_hf_network(packed, options), {some}).at(0),
                   wanted = run(resized_hf_network(wide, options), {some}).at(0);
      const auto values = [](const Tensor& tensor) {
        return std::vector<float>(tensor.values<float>().begin(), tensor.values<float>().end());
      };
      EXPECT_LE(farthest(values(got), values(wanted)), 1e-5) << type->name << ", " << length;
    }
    GenerateSpec spec{.prompt = {3, 5, 9}, .tokens = 6};
    std::vector<std::vector<float>> own, theirs;
    const std::vector<int32_t> text = generate(packed, spec, {}, &own);
    EXPECT_EQ(text, generate(wide, spec, {}, &theirs)) << type->name;
    for (size_t i = 0; i < own.size(); ++i) EXPECT_LE(farthest(own[i], theirs[i]), 1e-5);
    std::vector<std::vector<float>> again;
    spec.threads = 2;
    generate(packed, spec, {}, &again);
    EXPECT_EQ(again, own) << "two threads";
  }
}

// Weights rounded to our own formats, by their codes or as floats: the same tokens, and logits but
// for the order of sums. `.mz` files give the codes back.
TEST(Packed, FormatsInGroupsGiveTheTokensOfTheirFloats) {
  const auto own = [](const char* name, Dict more) {
    Dict config{{"name", name}, {"weight_only", true}};
    for (auto& [key, value] : more) config.set(key, value);
    return Dict{{"by", "type"}, {"linear", Dict{{"config", std::move(config)}}}};
  };
  const std::vector<Dict> formats = {
      own("nf4", {{"weight_group_size", 32}}),
      own("group_integer", {{"weight_width", 4}, {"weight_group_size", 32}}),
      own("group_integer", {{"weight_width", 3}, {"weight_group_size", 32}}),
      own("group_integer", {{"weight_width", 8}, {"weight_group_size", 32}}),
      own("group_integer",
          {{"weight_width", 4}, {"weight_group_size", 32}, {"weight_affine", true}}),
      own("group_integer",
          {{"weight_width", 2}, {"weight_group_size", 32}, {"weight_affine", true}}),
      own("mxint", {{"weight_width", 4}, {"weight_block_size", 32}})};
  const std::string folder = test::temporary_folder();
  for (const Dict& format : formats) {
    const std::string text = to_json(format);
    Graph wide = graph_of_file(test::golden_path("language/llama_sharded"));
    PassContext context;
    run_pass(wide, "quantize", format, context);
    Graph packed = wide;
    run_pass(packed, "pack_weights", Dict{}, context);
    size_t count = 0, linear = 0;
    for (const auto& [path, module] : packed.modules())
      for (const auto& [name, value] : module.parameters)
        if (module.quantization.find(name)) {
          count += value.packed() ? 1 : 0;
          linear += value.dim(1) % 32 == 0 ? 1 : 0;
        }
    EXPECT_EQ(count, linear) << text;  // all whose rows are whole groups
    EXPECT_GT(count, 0u);
    const std::string file = folder + "/packed.mz";
    save_mz(file, packed);
    const Graph again = graph_of_file(file);
    for (const auto& [name, value] : state_dict(packed)) {
      EXPECT_EQ(again.tensor(name)->packed() != nullptr, value.packed() != nullptr) << name;
      EXPECT_TRUE(again.tensor(name)->same_bits(value)) << name;
    }
    const GenerateSpec spec{.prompt = {3, 5, 9}, .tokens = 6};
    std::vector<std::vector<float>> got, read, wanted;
    const std::vector<int32_t> tokens = generate(wide, spec, {}, &wanted);
    EXPECT_EQ(generate(packed, spec, {}, &got), tokens) << text;
    EXPECT_EQ(generate(again, spec, {}, &read), tokens) << text;
    EXPECT_EQ(read, got) << text;
    ASSERT_EQ(got.size(), wanted.size());
    for (size_t i = 0; i < got.size(); ++i) EXPECT_LE(farthest(got[i], wanted[i]), 1e-5) << text;
  }
}

// As methods leave them: a list of steps, and of zero points, for the groups of one matrix.
TEST(Packed, GivenStepsPackAsThoseOfTheData) {
  List steps, zeros;
  for (int g = 0; g < 8; ++g) {
    steps.emplace_back(0.1 + 0.013 * g);
    zeros.emplace_back(g);
  }
  Tensor matrix({4, 64});
  Random random(5, "matrix");
  for (int64_t i = 0; i < matrix.numel(); ++i)
    matrix.mutable_data<float>()[i] = static_cast<float>(random.uniform(-2, 2));
  for (const bool affine : {false, true})
    for (const char* name : {"group_integer", "nf4"}) {
      Dict config{{"group_size", 32}, {"step", steps}};
      if (std::string(name) == "group_integer") {
        config.set("width", 4);
        config.set("affine", affine);
        if (affine) config.set("zero_point", zeros);
      } else if (affine) {
        continue;
      }
      const QuantizerPtr quantizer = make_quantizer(name, config, "here");
      const Tensor rounded = quantize(*quantizer, matrix);
      const std::optional<Tensor> packed = packed_as(rounded, *quantizer);
      ASSERT_TRUE(packed) << name;
      // Eight groups: 32 codes of 4 bits, a step of double precision, a zero point.
      EXPECT_LE(packed->stored_bytes(), affine ? size_t{8 * 28} : size_t{8 * 24});
      for (int64_t i = 0; i < rounded.numel(); ++i)
        ASSERT_EQ(packed->item(i), rounded.item(i)) << name << " " << i;
    }
}

TEST(Packed, ProgramsKeepNoFloatsOfPackedWeightsUnlessTheyTrain) {
  const PackedTypePtr type = packed_type(*find_gguf_type(8));
  const Graph packed = network_of(type, true), wide = network_of(type, false);
  CompileOptions options;
  options.batch_size = 1;
  Program own = Program::compile(packed, options), theirs = Program::compile(wide, options);
  // What is left of the floats are those of tensors that are not packed (norms, rows of no whole
  // blocks), each from a cache line on; nothing of the others.
  size_t left = 0, all = 0;
  for (const auto& [name, tensor] : state_dict(packed)) {
    const size_t floats = static_cast<size_t>(tensor.numel() + 15) / 16 * 16;
    all += floats;
    if (!tensor.packed()) left += floats;
  }
  EXPECT_LT(2 * left, all);
  EXPECT_EQ(own.parameter_memory().size(), left);
  EXPECT_EQ(theirs.parameter_memory().size(), all);
  options.training = true;
  EXPECT_EQ(Program::compile(packed, options).parameter_memory().size(),
            theirs.parameter_memory().size());
  // What a program gives back are the same blocks.
  for (const auto& [name, tensor] : own.state())
    EXPECT_TRUE(tensor.same_bits(*packed.tensor(name))) << name;
}

TEST(Packed, WhoeverAsksForFloatsGetsThemAndWritesLeaveTheBlocksAlone) {
  const Blocks blocks(packed_type(*find_gguf_type(3)), 4, 64, 1, false);
  const Tensor packed({4, 64}, blocks.type, reinterpret_cast<const std::byte*>(blocks.bytes.data()),
                      nullptr);
  std::vector<float> wanted(256);
  kernels::reference::packed_widen(blocks.rows(), 0, 4, wanted.data());
  EXPECT_EQ(packed.stored_bytes(), 160u);
  EXPECT_EQ(packed.bytes(), 1024u);
  EXPECT_TRUE(packed.same_bits(Tensor::of({4, 64}, wanted)));
  EXPECT_TRUE(packed.packed());
  EXPECT_FALSE(packed.to(DType::f32).packed());
  EXPECT_EQ(packed.item(77), double{wanted[77]});
  EXPECT_TRUE(packed.reshaped({2, 2, 64}).packed());
  EXPECT_FALSE(packed.reshaped({64, 4}).packed());
  EXPECT_EQ(packed.reshaped({64, 4}).item(77), double{wanted[77]});
  Tensor written = packed;
  written.mutable_data<float>()[3] = 5;
  EXPECT_FALSE(written.packed());
  EXPECT_EQ(written.item(3), 5);
  EXPECT_EQ(written.item(4), double{wanted[4]});
  EXPECT_EQ(packed.item(3), double{wanted[3]});
}

}  // namespace
}  // namespace mase::packed_test
