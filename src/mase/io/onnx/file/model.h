// SPDX-License-Identifier: Apache-2.0
// An ONNX model as onnx.proto describes it, and nothing of our own graph: what a file says, typed.
// Tensors view the file's memory; names are copied.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "mase/base/tensor.h"

namespace mase::onnx {

// onnx.proto's TensorProto.DataType, with its numbers.
enum class Element : int32_t {
  undefined = 0,
  f32 = 1,
  u8 = 2,
  i8 = 3,
  u16 = 4,
  i16 = 5,
  i32 = 6,
  i64 = 7,
  text = 8,
  boolean = 9,
  f16 = 10,
  f64 = 11,
  u32 = 12,
  u64 = 13,
  complex64 = 14,
  complex128 = 15,
  bf16 = 16,
  f8e4m3fn = 17,
  f8e4m3fnuz = 18,
  f8e5m2 = 19,
  f8e5m2fnuz = 20,
  u4 = 21,
  i4 = 22,
  f4e2m1 = 23,
  f8e8m0 = 24,
  u2 = 25,
  i2 = 26,
};
std::string element_name(Element element);  // "float32", "int4"; "type 77" for a number not known

using Properties = std::vector<std::pair<std::string, std::string>>;
const std::string* find_property(const Properties& properties, const std::string& key);
// Of a quantiser that we wrote: which operand of its layer it rounds.
constexpr const char* operand_property = "mase.operand";

// The values of a tensor stand in one field of several; which one decides how they are coded.
struct TensorData {
  enum class Field { none, raw, floats, doubles, int32s, int64s, uint64s, texts, external };

  std::string name = {};
  Shape dims = {};
  Element element = Element::undefined;
  Field field = Field::none;
  std::span<const std::byte> bytes = {};   // raw, floats, doubles: little-endian values
  std::vector<int64_t> numbers = {};       // int32s, int64s, uint64s (their bits)
  std::vector<std::string> texts = {};     // texts
  std::string location = {};               // external: a path beneath the model's folder
  uint64_t offset = 0;                     // external
  std::optional<uint64_t> length = {};     // external
  std::shared_ptr<const void> owner = {};  // of `bytes`
};

struct GraphData;

struct Attribute {
  // onnx.proto's AttributeProto.AttributeType, with its numbers.
  enum class Type : int32_t {
    undefined = 0,
    number = 1,
    integer = 2,
    text = 3,
    tensor = 4,
    graph = 5,
    numbers = 6,
    integers = 7,
    texts = 8,
    tensors = 9,
    graphs = 10,
  };
  std::string name = {};
  Type type = Type::undefined;
  float number = 0;
  int64_t integer = 0;
  std::string text = {};
  std::vector<float> numbers = {};
  std::vector<int64_t> integers = {};
  std::vector<std::string> texts = {};
  std::shared_ptr<const TensorData> tensor = {};
  std::shared_ptr<const GraphData> graph = {};
  std::string reference = {};  // inside functions: the function's attribute that stands here
};

struct NodeData {
  std::string op, domain = {}, name = {}, overload = {};
  std::vector<std::string> inputs = {}, outputs = {};  // "": left out
  std::vector<Attribute> attributes = {};
  Properties metadata = {};

  const Attribute* find(const std::string& attribute) const;
};

// A size is a number, a name, or nothing.
struct Dimension {
  std::optional<int64_t> size = {};
  std::string parameter = {};
};

struct ValueInfo {
  std::string name = {};
  Element element = Element::undefined;
  std::optional<std::vector<Dimension>> shape = {};
  bool is_tensor = true;  // else a sequence, a map, ...
  std::string doc = {};
};

struct GraphData {
  std::string name = {}, doc = {};
  std::vector<NodeData> nodes = {};
  std::vector<TensorData> initializers = {};
  std::vector<ValueInfo> inputs = {}, outputs = {}, values = {};
  size_t sparse_initializers = 0;
};

struct OperatorSet {
  std::string domain = {};
  int64_t version = 0;
};

struct FunctionData {
  std::string name = {}, domain = {}, overload = {};
  std::vector<std::string> inputs = {}, outputs = {}, attributes = {};
  std::vector<Attribute> defaults = {};
  std::vector<NodeData> nodes = {};
  std::vector<OperatorSet> operator_sets = {};
};

struct Model {
  int64_t ir_version = 0;
  std::string producer = {}, producer_version = {}, domain = {}, doc = {};
  int64_t version = 0;
  std::vector<OperatorSet> operator_sets = {};
  Properties metadata = {};
  GraphData graph = {};
  std::vector<FunctionData> functions = {};

  // The version of a domain that the file imports; none if it does not.
  std::optional<int64_t> operator_set(const std::string& domain) const;
};

}  // namespace mase::onnx
