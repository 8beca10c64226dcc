// SPDX-License-Identifier: Apache-2.0
// Tensors of a model as tensors of ours, wherever a file keeps their values: in one of seven
// fields, or in another file beneath the model's folder.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>

#include "mase/base/file.h"
#include "mase/io/onnx/file/model.h"
#include "mase/io/read_limits.h"

namespace mase::onnx {

constexpr size_t most_dimensions = 64;  // of a tensor, as in PyTorch and NumPy

// Numbers of four bits become int8 or uint8, those of eight or four floating bits float32: each
// keeps its value, and `element` says what it was.
struct Constant {
  Tensor tensor;
  Element element = Element::f32;
};

// The files that hold external data. Each is opened once: beneath the model's folder, component by
// component and without following links, so that no model can make us read what lies elsewhere.
// Values are read, not mapped: a file that is cut meanwhile is an Error then.
class ExternalFiles {
 public:
  // An empty folder: there is none, as for bytes that come from nowhere.
  explicit ExternalFiles(std::string folder) : folder_(std::move(folder)) {}

  struct File {
    Descriptor descriptor;
    uint64_t size;
  };
  // Twice what a file holds is added to the budget when it is opened first.
  const File& open(const std::string& location, MemoryBudget& budget, const std::string& place);
  // For who begins again with the budget of before: files are opened, and added to it, once more.
  void close() { files_.clear(); }
  // An Error if so many bytes would be read and there is no memory for them: the file that a model
  // names may be sparse and of any size.
  void check_memory(size_t size, const std::string& place) const;

 private:
  std::string folder_;
  std::map<std::string, File> files_;
};

// Errors name `place` and the tensor.
Constant read_constant(const TensorData& data, ExternalFiles& files, MemoryBudget& budget,
                       const std::string& place);

// The other way: raw_data that views the tensor's memory. Four-bit elements are packed.
TensorData tensor_data(const std::string& name, const Tensor& tensor, Element element);
TensorData tensor_data(const std::string& name, const Tensor& tensor);
Element element_for(DType dtype);
// What a tensor of these elements becomes; nothing for text and complex numbers.
std::optional<DType> dtype_of(Element element);
bool is_real(DType dtype);
bool is_real(Element element);  // floats of any width

}  // namespace mase::onnx
