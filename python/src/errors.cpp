// SPDX-License-Identifier: Apache-2.0
// The library's errors as Python's: mase.Error is a ValueError with the same one line and the parts
// it was made of; mase.InternalError, a mistake of ours, is a RuntimeError.
#include "mase/base/error.h"

#include <nanobind/stl/string.h>

#include "module.h"

namespace mase::python {
namespace {

namespace nb = nanobind;

// Type objects live as long as the interpreter does.
PyObject* error_type = nullptr;

void raise_error(const Error& error) {
  nb::object made = nb::handle(error_type)(nb::str(error.what()));
  made.attr("place") = nb::str(error.place().c_str());
  made.attr("cause") = nb::str(error.cause().c_str());
  made.attr("remedy") = nb::str(error.remedy().c_str());
  PyErr_SetObject(error_type, made.ptr());
}

}  // namespace

void bind_errors(nb::module_& module) {
  error_type = PyErr_NewExceptionWithDoc(
      "mase.Error", "What the caller got wrong: one line with place, cause and remedy.",
      PyExc_ValueError, nullptr);
  if (!error_type) throw nb::python_error();
  nb::handle type(error_type);
  for (const char* part : {"place", "cause", "remedy"}) nb::setattr(type, part, nb::str(""));
  module.attr("Error") = type;
  nb::register_exception_translator(
      [](const std::exception_ptr& thrown, void*) {
        try {
          std::rethrow_exception(thrown);
        } catch (const Error& error) {
          raise_error(error);
        }
      },
      nullptr);
  nb::exception<InternalError>(module, "InternalError", PyExc_RuntimeError).attr("__module__") =
      "mase";
}

}  // namespace mase::python
