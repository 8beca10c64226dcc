// SPDX-License-Identifier: Apache-2.0
// The field numbers of onnx.proto's messages, for reader and writer.
#pragma once

#include <cstdint>

namespace mase::onnx::field {

struct Model {
  enum : uint32_t {
    ir_version = 1,
    producer_name = 2,
    producer_version = 3,
    domain = 4,
    model_version = 5,
    doc_string = 6,
    graph = 7,
    opset_import = 8,
    metadata_props = 14,
    functions = 25,
  };
};
struct OperatorSet {
  enum : uint32_t { domain = 1, version = 2 };
};
struct Entry {
  enum : uint32_t { key = 1, value = 2 };
};
struct Graph {
  enum : uint32_t {
    node = 1,
    name = 2,
    initializer = 5,
    doc_string = 10,
    input = 11,
    output = 12,
    value_info = 13,
    sparse_initializer = 15,
  };
};
struct Node {
  enum : uint32_t {
    input = 1,
    output = 2,
    name = 3,
    op_type = 4,
    attribute = 5,
    doc_string = 6,
    domain = 7,
    overload = 8,
    metadata_props = 9,
  };
};
struct Attribute {
  enum : uint32_t {
    name = 1,
    f = 2,
    i = 3,
    s = 4,
    t = 5,
    g = 6,
    floats = 7,
    ints = 8,
    strings = 9,
    tensors = 10,
    graphs = 11,
    type = 20,
    ref_attr_name = 21,
  };
};
struct Tensor {
  enum : uint32_t {
    dims = 1,
    data_type = 2,
    segment = 3,
    float_data = 4,
    int32_data = 5,
    string_data = 6,
    int64_data = 7,
    name = 8,
    raw_data = 9,
    double_data = 10,
    uint64_data = 11,
    external_data = 13,
    data_location = 14,
  };
};
struct ValueInfo {
  enum : uint32_t { name = 1, type = 2, doc_string = 3 };
};
struct Type {
  enum : uint32_t { tensor_type = 1 };
};
struct TensorType {
  enum : uint32_t { elem_type = 1, shape = 2 };
};
struct TensorShape {
  enum : uint32_t { dim = 1 };
};
struct Dimension {
  enum : uint32_t { dim_value = 1, dim_param = 2 };
};
struct Function {
  enum : uint32_t {
    name = 1,
    input = 4,
    output = 5,
    attribute = 6,
    node = 7,
    opset_import = 9,
    domain = 10,
    attribute_proto = 11,
    overload = 13,
  };
};

}  // namespace mase::onnx::field
