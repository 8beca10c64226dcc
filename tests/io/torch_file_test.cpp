// SPDX-License-Identifier: Apache-2.0
// PyTorch's own files: what real PyTorch wrote, read here.
#include "mase/io/torch/torch_file.h"

#include <cstring>

#include "mase/io/networks/checkpoint.h"
#include "mase/io/zip/zip_reader.h"
#include "support/support.h"

namespace mase::torch_file_test {
namespace {

std::map<std::string, Tensor> by_name(const TensorTable& table) {
  return {table.begin(), table.end()};
}

void expect_values(const Tensor& given, const Tensor& expected, const std::string& name) {
  EXPECT_EQ(given.shape(), expected.shape()) << name;
  for (int64_t i = 0; i < expected.numel(); ++i)
    EXPECT_EQ(static_cast<float>(given.item(i)), expected.item(i)) << name << " " << i;
}

TEST(TorchFile, OddTensorsOfBothContainers) {
  const auto expected =
      by_name(load_safetensors(test::golden_path("torch/odd.expected.safetensors")));
  for (const char* file : {"torch/odd.pt", "torch/odd_legacy.pt"}) {
    const Checkpoint checkpoint = load_checkpoint(test::golden_path(file));
    EXPECT_EQ(checkpoint.type, CheckpointType::pt);
    EXPECT_EQ(checkpoint.tensors.size(), expected.size()) << file;
    const auto given = by_name(checkpoint.tensors);
    for (const auto& [name, tensor] : expected) expect_values(given.at(name), tensor, name);
    EXPECT_EQ(given.at("half").dtype(), DType::f16);
    EXPECT_EQ(given.at("bf16").dtype(), DType::bf16);
    EXPECT_EQ(given.at("f64").dtype(), DType::f64);
    EXPECT_EQ(given.at("bool").dtype(), DType::boolean);
    EXPECT_EQ(given.at("tied_a").raw(), given.at("tied_b").raw()) << "shared tensors share memory";
  }
}

TEST(TorchFile, LightningCheckpointsHoldNetworkAndTheRest) {
  for (const char* name : {"jsc-tiny", "jsc-toy", "jsc-10x", "jsc-toy10x"}) {
    const std::string stem = test::golden_path(std::string("torch/") + name);
    const auto expected = by_name(load_safetensors(stem + ".expected.safetensors"));
    for (const char* ending : {".ckpt", ".pt"}) {
      const Checkpoint checkpoint = load_checkpoint(stem + ending);
      for (const auto& [key, tensor] : checkpoint.tensors)
        expect_values(tensor, expected.at("param." + key), key);
    }
    EXPECT_EQ(load_checkpoint(stem + ".ckpt").tensors.size(),
              load_checkpoint(stem + ".pt").tensors.size());
  }
  const Checkpoint checkpoint = load_checkpoint(test::golden_path("torch/jsc-tiny.ckpt"));
  EXPECT_EQ(checkpoint.type, CheckpointType::pl);
  EXPECT_EQ(checkpoint.prefix, "model.");
  EXPECT_EQ(checkpoint.contents["epoch"], Value(2));
  EXPECT_EQ(checkpoint.contents["loops"]["fit_loop"]["epoch_progress"]["total"]["ready"], Value(3));
  EXPECT_EQ(checkpoint.contents["lr_schedulers"].as_list()[0]["T_max"], Value(10));
  EXPECT_FALSE(checkpoint.contents.as_dict().contains("state_dict"));
  const auto others = by_name(checkpoint.others);
  EXPECT_EQ(others.at("optimizer_states.0.state.2.exp_avg").shape(), (Shape{5, 16}));
}

TEST(TorchFile, AFlippedBitInATensorIsAnError) {
  const std::string whole = test::read(test::golden_path("torch/jsc-tiny.pt"));
  MemoryBudget budget({}, whole.size());
  const ZipReader zip(std::as_bytes(std::span(whole)), "jsc-tiny.pt", budget);
  int flips = 0;
  for (const ZipReader::Entry& entry : zip.entries()) {
    if (entry.name.find("/data/") == std::string_view::npos || entry.size == 0) continue;
    std::string bad = whole;
    const auto at = static_cast<size_t>(entry.data_offset + entry.size / 2);
    bad[at] = static_cast<char>(bad[at] ^ 16);
    try {
      const TorchFile file(std::as_bytes(std::span(bad)), nullptr, "bad.pt");
      ADD_FAILURE() << entry.name;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("its checksum is wrong"), std::string::npos);
    }
    ++flips;
  }
  EXPECT_GT(flips, 4);
}

// With compute_crc32 = False PyTorch writes 0 for every checksum.
TEST(TorchFile, AFileWithoutChecksumsIsReadAndOneWithAWrongZeroIsNot) {
  const std::string path = test::temporary_folder() + "/plain.pt";
  Tensor tensor({2});
  tensor.mutable_data<float>()[1] = 3;
  save_state_dict(path, {{"weight", tensor}});
  const std::string file = test::read(path);
  std::string without = file, one = file;
  for (size_t at = file.find("PK\1\2"); at != std::string::npos; at = file.find("PK\1\2", at + 1)) {
    uint32_t local = 0;
    std::memcpy(&local, file.data() + at + 42, 4);
    const bool first = one == file;
    for (std::string* changed : {&without, first ? &one : nullptr})
      if (changed) {
        changed->replace(at + 16, 4, 4, '\0');
        changed->replace(local + 14, 4, 4, '\0');
      }
  }
  test::write(path, without);
  const Checkpoint loaded = load_checkpoint(path);
  ASSERT_EQ(loaded.tensors.size(), 1u);
  EXPECT_TRUE(loaded.tensors[0].second.same_bits(tensor));
  test::write(path, one);
  EXPECT_THROW(load_checkpoint(path), Error);
}

TEST(TorchFile, RoundTripsWhatTheWriterWrites) {
  const Tensor tensor = Tensor::of({3}, std::vector<float>{1, -2, 0.5f});
  TensorTable state, more;
  for (const DType dtype :
       {DType::f64, DType::f32, DType::f16, DType::bf16, DType::i64, DType::i32, DType::i16,
        DType::i8, DType::u64, DType::u32, DType::u16, DType::u8, DType::boolean})
    state.emplace_back(fmt::format("t.{}", dtype_name(dtype)), tensor.to(dtype));
  more.emplace_back("optimizer_states.0.state.0.exp_avg", tensor);
  more.emplace_back("random.state", tensor);
  const Value extra = Dict{{"epoch", 4},
                           {"rate", 0.25},
                           {"big", int64_t{1} << 50},
                           {"least", INT64_MIN},
                           {"words", List{"a", nullptr, true, List{}, Dict{}}}};
  const std::string path = test::temporary_folder() + "/a.ckpt";
  save_lightning(path, state, extra, more);
  const Checkpoint back = load_checkpoint(path);
  EXPECT_EQ(back.type, CheckpointType::pl);
  ASSERT_EQ(back.tensors.size(), state.size());
  for (size_t i = 0; i < state.size(); ++i) {
    EXPECT_EQ(back.tensors[i].first, state[i].first);
    EXPECT_TRUE(back.tensors[i].second.same_bits(state[i].second)) << state[i].first;
  }
  for (const auto& [key, value] : extra.as_dict()) EXPECT_EQ(back.contents[key], value) << key;
  const auto others = by_name(back.others);
  EXPECT_TRUE(others.at("random.state").same_bits(tensor));
  EXPECT_TRUE(others.at("optimizer_states.0.state.0.exp_avg").same_bits(tensor));
}

}  // namespace
}  // namespace mase::torch_file_test
