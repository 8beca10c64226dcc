// SPDX-License-Identifier: Apache-2.0
#include "mase/io/networks/safetensors.h"

#include "mase/base/file.h"
#include "mase/io/networks/checkpoint.h"
#include "support/support.h"

namespace mase::safetensors_test {
namespace {

std::string file_of(const std::string& header, const std::string& data = "") {
  std::string text(8, '\0');
  for (size_t i = 0; i < 8; ++i) text[i] = static_cast<char>(header.size() >> (8 * i));
  return text + header + data;
}

TensorTable parse(const std::string& content, Dict* metadata = nullptr) {
  auto owner = std::make_shared<const std::string>(content);
  MemoryBudget budget({}, content.size());
  return parse_safetensors(std::as_bytes(std::span(*owner)), owner, "x.safetensors", metadata,
                           budget);
}

std::string fault(const std::string& content) {
  try {
    parse(content);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Safetensors, ReadsEveryDtypeAndKeepsOrder) {
  TensorTable tensors;
  for (const DType dtype :
       {DType::boolean, DType::f32, DType::i64, DType::u8, DType::f64, DType::f16, DType::bf16,
        DType::i32, DType::i16, DType::i8, DType::u64, DType::u32, DType::u16}) {
    Tensor tensor({2, 3}, dtype);
    for (size_t i = 0; i < tensor.bytes(); ++i)
      tensor.mutable_raw()[i] = static_cast<std::byte>(dtype == DType::boolean ? i % 2 : i * 7);
    tensors.emplace_back(fmt::format("t.{}", dtype_name(dtype)), tensor);
  }
  tensors.emplace_back("scalar", Tensor::scalar(3));
  tensors.emplace_back("empty", Tensor({0, 4}));
  const std::string path = test::temporary_folder() + "/a.safetensors";
  save_safetensors(path, tensors, Dict{{"format", "pt"}, {"n", 3}});
  Dict metadata;
  const TensorTable back = load_safetensors(path, &metadata);
  EXPECT_EQ(metadata, (Dict{{"format", "pt"}, {"n", "3"}}));
  ASSERT_EQ(back.size(), tensors.size());
  for (size_t i = 0; i < back.size(); ++i) {
    EXPECT_EQ(back[i].first, tensors[i].first);
    EXPECT_TRUE(back[i].second.same_bits(tensors[i].second)) << back[i].first;
    EXPECT_EQ(
        reinterpret_cast<uintptr_t>(back[i].second.raw()) % dtype_size(back[i].second.dtype()), 0u);
  }
}

TEST(Safetensors, CopiesWhatIsNotAligned) {
  const TensorTable tensors =
      parse(file_of(R"({"b":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                    R"("a":{"dtype":"I32","shape":[1],"data_offsets":[1,5]}})",
                    std::string("\x01\x02\0\0\0", 5)));
  EXPECT_EQ(tensors[1].second.item(), 2);
}

TEST(Safetensors, HoldsTheRules) {
  const auto one = [](const std::string& inner) { return "{\"a\":{" + inner + "}}"; };
  const std::string good = one(R"("dtype":"F32","shape":[1],"data_offsets":[0,4])");
  EXPECT_EQ(fault(file_of(good, "abcd")), "no error");
  EXPECT_EQ(fault(file_of(good + "   ", "abcd")), "no error");
  EXPECT_EQ(fault("short"), "x.safetensors: 5 bytes are too few for a safetensors file");
  EXPECT_EQ(fault(std::string("\xff\xff\xff\xff\xff\xff\xff\x7f{}", 10)),
            "x.safetensors: byte 0: the header claims 9223372036854775807 bytes; the most is "
            "100000000");
  EXPECT_NE(fault(file_of(good).substr(0, 20)).find("cut short"), std::string::npos);
  EXPECT_EQ(fault(file_of("")), "x.safetensors: byte 8: the header must begin with '{'");
  EXPECT_EQ(fault(file_of(" {}")), "x.safetensors: byte 8: the header must begin with '{'");
  EXPECT_EQ(fault(file_of("{\"a\": oops}")),
            "x.safetensors: byte 15: the safetensors header is not valid JSON");
  EXPECT_EQ(
      fault(file_of(good, "abc")),
      "x.safetensors: tensor 'a': its bytes 0 to 4 are not inside the file's 3 bytes of data");
  EXPECT_EQ(fault(file_of(good, "abcde")), "x.safetensors: the last 1 bytes belong to no tensor");
  EXPECT_EQ(fault(file_of(one(R"("dtype":"F32","shape":[2],"data_offsets":[0,4])"), "abcd")),
            "x.safetensors: tensor 'a': float32 [2] takes 8 bytes, but the file gives it 4");
  EXPECT_EQ(fault(file_of(one(R"("dtype":"F32","shape":[4294967296,4294967296,4],)"
                              R"("data_offsets":[0,4])"),
                          "abcd")),
            "x.safetensors: tensor 'a': its shape is too large");
  EXPECT_EQ(fault(file_of(one(R"("dtype":"F8_E4M3","shape":[],"data_offsets":[0,1])"), "a")),
            "x.safetensors: tensor 'a': unknown dtype 'F8_E4M3'");
  EXPECT_EQ(fault(file_of(one(R"("dtype":"F32","dtype":"F32")"))),
            "x.safetensors: tensor 'a': the key 'dtype' is written twice");
  EXPECT_EQ(fault(file_of(one(R"("dtype":"F32")"))),
            "x.safetensors: tensor 'a': needs dtype, shape and data_offsets");
  EXPECT_NE(fault(file_of(one(R"("dtype":"F32","shape":[-1],"data_offsets":[0,4])"), "abcd"))
                .find("a negative number"),
            std::string::npos);
  const std::string u8 = R"({"dtype":"U8","shape":[2],"data_offsets":)";
  EXPECT_EQ(fault(file_of("{\"a\":" + u8 + "[0,2]},\"a\":" + u8 + "[2,4]}}", "abcd")),
            "x.safetensors: the key 'a' is written twice");
  EXPECT_EQ(fault(file_of("{\"a\":" + u8 + "[0,2]},\"b\":" + u8 + "[1,3]}}", "abc")),
            "x.safetensors: tensor 'b': overlaps another tensor");
  EXPECT_EQ(fault(file_of("{\"a\":" + u8 + "[0,2]},\"b\":" + u8 + "[3,5]}}", "abcde")),
            "x.safetensors: tensor 'b': there is a hole before it, at byte 2 of the data");
  EXPECT_NE(fault(file_of(std::string(100000, '['))), "no error");
  EXPECT_NE(fault(file_of("{\"a\":" + std::string(100000, '{'))), "no error");
}

TEST(Safetensors, EveryTruncationIsAnError) {
  const std::string content =
      file_of(R"({"__metadata__":{"k":"v"},"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})",
              "abcdefgh");
  EXPECT_EQ(fault(content), "no error");
  for (size_t size = 0; size < content.size(); ++size)
    EXPECT_NE(fault(content.substr(0, size)), "no error") << size;
}

}  // namespace
}  // namespace mase::safetensors_test
