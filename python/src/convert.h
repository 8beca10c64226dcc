// SPDX-License-Identifier: Apache-2.0
// Between Python's objects and the library's values and tensors. Tensors share memory both ways: an
// array that came in is kept alive by the tensor, a tensor that went out is kept alive by the
// array.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <memory>
#include <string>
#include <vector>

#include "mase/base/tensor.h"
#include "mase/base/value.h"
#include "mase/ir/graph.h"

namespace mase::python {

namespace nb = nanobind;

// None, bool, int, float, str, paths, sequences and mappings; an error names what else it found.
Value to_value(nb::handle object, const std::string& what = "");
nb::any from_value(const Value& value);

// A view of a contiguous array in host memory; an error that names `what` for anything else.
Tensor to_tensor(nb::handle object, const std::string& what);
std::vector<Tensor> to_tensors(const nb::list& objects, const std::string& what);

nb::any shared_array(const Tensor& tensor);  // NumPy's view of it, which cannot be written
nb::any owned_array(Tensor tensor);          // an array of its own: may be written
nb::dict table_arrays(const TensorTable& table);

// Keeps a Python object alive from C++, whoever lets go of it and with or without the lock.
std::shared_ptr<const void> keep_alive(nb::object object);

}  // namespace mase::python
