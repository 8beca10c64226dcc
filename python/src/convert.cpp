// SPDX-License-Identifier: Apache-2.0
#include "convert.h"

#include <nanobind/stl/string.h>

#include <cmath>

#include "mase/base/text.h"

namespace mase::python {
namespace {

using AnyArray = nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu>;

constexpr int deepest = 200;  // of nested tables: a list that holds itself must not end the process

std::string type_of(nb::handle object) {
  return nb::cast<std::string>(nb::str(object.type().attr("__name__")));
}

// Python's text may hold halves of characters (names of files that are no Unicode), which UTF-8 has
// not.
std::string text_of(nb::handle object, const std::string& what) {
  Py_ssize_t size = 0;
  const char* text = PyUnicode_AsUTF8AndSize(object.ptr(), &size);
  if (text) return {text, static_cast<size_t>(size)};
  PyErr_Clear();
  throw Error(what, "the text is not Unicode: it holds half a character", "rename the file");
}

Value value_at_depth(nb::handle object, const std::string& what, int depth) {
  if (depth > deepest) throw Error(what, "is nested too deeply, or holds itself");
  PyObject* raw = object.ptr();
  if (object.is_none()) return {};
  if (PyBool_Check(raw)) return Value(raw == Py_True);
  if (PyLong_Check(raw)) {
    const long long number = PyLong_AsLongLong(raw);
    if (number == -1 && PyErr_Occurred()) {
      PyErr_Clear();
      throw Error(what, "the whole number has more than 64 bits");
    }
    return Value(static_cast<int64_t>(number));
  }
  if (PyFloat_Check(raw)) return Value(PyFloat_AsDouble(raw));
  if (PyUnicode_Check(raw)) return Value(text_of(object, what));
  if (PyDict_Check(raw)) {
    Dict dict;
    for (const auto& [key, item] : nb::borrow<nb::dict>(object)) {
      if (!PyUnicode_Check(key.ptr()))
        throw Error(what, fmt::format("a key is {} instead of text", type_of(key)));
      const std::string name = text_of(key, what);
      dict.set(name, value_at_depth(item, what.empty() ? name : what + "." + name, depth + 1));
    }
    return dict;
  }
  if (PyList_Check(raw) || PyTuple_Check(raw)) {
    List list;
    for (const nb::handle item : nb::borrow<nb::sequence>(object))
      list.push_back(value_at_depth(item, what, depth + 1));
    return list;
  }
  if (nb::hasattr(object, "__fspath__"))
    return Value(text_of(nb::str(object.attr("__fspath__")()), what));
  // Scalars of NumPy and torch: whole numbers know __index__, all others __float__.
  if (nb::hasattr(object, "item") && nb::hasattr(object, "ndim") &&
      nb::cast<int>(object.attr("ndim")) == 0)
    return value_at_depth(object.attr("item")(), what, depth + 1);
  throw Error(what, fmt::format("expected a number, text, list or dict, got {}", type_of(object)));
}

struct DtypePair {
  DType ours;
  nb::dlpack::dtype theirs;
};

nb::dlpack::dtype dlpack_dtype(nb::dlpack::dtype_code code, int bits) {
  return {static_cast<uint8_t>(code), static_cast<uint8_t>(bits), 1};
}

const std::vector<DtypePair>& dtype_pairs() {
  using Code = nb::dlpack::dtype_code;
  static const std::vector<DtypePair> pairs = {
      {DType::f64, dlpack_dtype(Code::Float, 64)}, {DType::f32, dlpack_dtype(Code::Float, 32)},
      {DType::f16, dlpack_dtype(Code::Float, 16)}, {DType::i64, dlpack_dtype(Code::Int, 64)},
      {DType::i32, dlpack_dtype(Code::Int, 32)},   {DType::i16, dlpack_dtype(Code::Int, 16)},
      {DType::i8, dlpack_dtype(Code::Int, 8)},     {DType::u64, dlpack_dtype(Code::UInt, 64)},
      {DType::u32, dlpack_dtype(Code::UInt, 32)},  {DType::u16, dlpack_dtype(Code::UInt, 16)},
      {DType::u8, dlpack_dtype(Code::UInt, 8)},    {DType::boolean, dlpack_dtype(Code::Bool, 8)}};
  return pairs;
}

// For type checkers: what is in it cannot be said.
nb::any as_any(nb::object object) { return nb::steal<nb::any>(object.release()); }

template <class Array>
nb::any array_of(const Tensor& tensor, const void* data) {
  const Tensor* kept = new Tensor(tensor);
  nb::capsule owner(kept, [](void* held) noexcept { delete static_cast<const Tensor*>(held); });
  std::vector<size_t> shape(tensor.shape().begin(), tensor.shape().end());
  for (const DtypePair& pair : dtype_pairs())
    if (pair.ours == tensor.dtype())
      return as_any(nb::cast(
          Array(const_cast<void*>(data), shape.size(), shape.data(), owner, nullptr, pair.theirs)));
  throw InternalError(fmt::format("NumPy has no {}", dtype_name(tensor.dtype())));
}

// NumPy has no bfloat16; float32 holds every one of them.
Tensor with_numpy_dtype(const Tensor& tensor) {
  return tensor.dtype() == DType::bf16 ? tensor.to(DType::f32) : tensor;
}

}  // namespace

Value to_value(nb::handle object, const std::string& what) {
  return value_at_depth(object, what, 0);
}

nb::any from_value(const Value& value) {
  if (value.is_bool()) return as_any(nb::cast(value.as_bool()));
  if (value.is_int()) return as_any(nb::cast(value.as_int()));
  if (value.is_double()) return as_any(nb::cast(value.as_double()));
  if (value.is_string()) return as_any(nb::str(value.as_string().data(), value.as_string().size()));
  if (value.is_symbol()) return as_any(nb::str(value.symbol().data(), value.symbol().size()));
  if (value.is_list()) {
    nb::list list;
    for (const Value& item : value.as_list()) list.append(from_value(item));
    return as_any(std::move(list));
  }
  if (value.is_dict()) {
    nb::dict dict;
    for (const auto& [key, item] : value.as_dict())
      dict[nb::str(key.data(), key.size())] = from_value(item);
    return as_any(std::move(dict));
  }
  return as_any(nb::none());
}

std::shared_ptr<const void> keep_alive(nb::object object) {
  PyObject* raw = object.release().ptr();
  return {raw, [](const void* held) {
            if (!Py_IsInitialized()) return;  // the process ends: there is nobody to tell
            nb::gil_scoped_acquire lock;
            Py_DECREF(const_cast<PyObject*>(static_cast<const PyObject*>(held)));
          }};
}

Tensor to_tensor(nb::handle object, const std::string& what) {
  AnyArray array;
  if (!nb::try_cast(object, array, false))
    throw Error(what,
                fmt::format("expected a contiguous array in host memory, got {}", type_of(object)),
                "numpy.ascontiguousarray(x, dtype='float32') makes one");
  Shape shape;
  for (size_t i = 0; i < array.ndim(); ++i) shape.push_back(static_cast<int64_t>(array.shape(i)));
  for (const DtypePair& pair : dtype_pairs()) {
    if (!(pair.theirs == array.dtype())) continue;
    const auto* data = static_cast<const std::byte*>(array.data());
    if (element_count(shape) == 0) return Tensor(shape, pair.ours);
    if (reinterpret_cast<uintptr_t>(data) % dtype_size(pair.ours) != 0)
      throw Error(what, "the array's memory is not aligned to its elements", "copy it");
    return Tensor(shape, pair.ours, data, keep_alive(nb::borrow(object)));
  }
  throw Error(what,
              fmt::format("arrays of such elements are not taken (code {}, {} bits)",
                          array.dtype().code, array.dtype().bits),
              "convert it to float32 or int64");
}

std::vector<Tensor> to_tensors(const nb::list& objects, const std::string& what) {
  std::vector<Tensor> tensors;
  for (const nb::handle object : objects) tensors.push_back(to_tensor(object, what));
  return tensors;
}

nb::any shared_array(const Tensor& tensor) {
  const Tensor shown = with_numpy_dtype(tensor);
  return array_of<nb::ndarray<nb::numpy, nb::ro>>(shown, shown.raw());
}

nb::any owned_array(Tensor tensor) {
  Tensor own = with_numpy_dtype(tensor);
  tensor = Tensor();  // the memory has one owner now, so that writing makes no copy
  std::byte* data = own.mutable_raw();
  const Tensor* kept = new Tensor(std::move(own));
  nb::capsule owner(kept, [](void* held) noexcept { delete static_cast<const Tensor*>(held); });
  std::vector<size_t> shape(kept->shape().begin(), kept->shape().end());
  for (const DtypePair& pair : dtype_pairs())
    if (pair.ours == kept->dtype())
      return as_any(nb::cast(
          nb::ndarray<nb::numpy>(data, shape.size(), shape.data(), owner, nullptr, pair.theirs)));
  throw InternalError(fmt::format("NumPy has no {}", dtype_name(kept->dtype())));
}

nb::dict table_arrays(const TensorTable& table) {
  nb::dict arrays;
  for (const auto& [name, tensor] : table)
    arrays[nb::str(name.data(), name.size())] = shared_array(tensor);
  return arrays;
}

}  // namespace mase::python
