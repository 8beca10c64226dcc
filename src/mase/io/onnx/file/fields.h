// SPDX-License-Identifier: Apache-2.0
// The field numbers of onnx.proto's messages, for reader and writer. A name without a number has
// the one after that before it.
#pragma once

#include <cstdint>

namespace mase::onnx::field {

struct Model {
  enum : uint32_t {
    ir_version = 1,
    producer_name,
    producer_version,
    domain,
    model_version,
    doc_string,
    graph,
    opset_import,
    metadata_props = 14,
    functions = 25
  };
};
struct OperatorSet {
  enum : uint32_t { domain = 1, version };
};
struct Entry {
  enum : uint32_t { key = 1, value };
};
struct Graph {
  enum : uint32_t {
    node = 1,
    name,
    initializer = 5,
    doc_string = 10,
    input,
    output,
    value_info,
    sparse_initializer = 15
  };
};
struct Node {
  enum : uint32_t {
    input = 1,
    output,
    name,
    op_type,
    attribute,
    doc_string,
    domain,
    overload,
    metadata_props
  };
};
struct Attribute {
  enum : uint32_t {
    name = 1,
    f,
    i,
    s,
    t,
    g,
    floats,
    ints,
    strings,
    tensors,
    graphs,
    type = 20,
    ref_attr_name
  };
};
struct Tensor {
  enum : uint32_t {
    dims = 1,
    data_type,
    segment,
    float_data,
    int32_data,
    string_data,
    int64_data,
    name,
    raw_data,
    double_data,
    uint64_data,
    external_data = 13,
    data_location
  };
};
struct ValueInfo {
  enum : uint32_t { name = 1, type, doc_string };
};
struct Type {
  enum : uint32_t { tensor_type = 1 };
};
struct TensorType {
  enum : uint32_t { elem_type = 1, shape };
};
struct TensorShape {
  enum : uint32_t { dim = 1 };
};
struct Dimension {
  enum : uint32_t { dim_value = 1, dim_param };
};
struct Function {
  enum : uint32_t {
    name = 1,
    input = 4,
    output,
    attribute,
    node,
    opset_import = 9,
    domain,
    attribute_proto,
    overload = 13
  };
};

}  // namespace mase::onnx::field
