// SPDX-License-Identifier: Apache-2.0
// The extension module mase._native: the library as plain functions and a few classes. The packages
// mase and chop, written in Python, are what people use.
#include "module.h"

#include <csignal>

#include "mase/base/cut_files.h"

namespace {

// Who is asked about bus errors that are not those of a file of ours that was cut.
struct sigaction bus_errors_before {};

void on_bus_error(int number, siginfo_t* info, void*) {
  // On return the access is tried again: it finds zeros, or that handler.
  if (!mase::fill_cut_page(info->si_addr)) ::sigaction(number, &bus_errors_before, nullptr);
}

void survive_cut_files() {
  struct sigaction action {};
  action.sa_sigaction = on_bus_error;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  ::sigaction(SIGBUS, &action, &bus_errors_before);
}

// A second import in the same interpreter (somebody cleared sys.modules) gets what the first one
// made: types cannot be registered twice.
bool imported_before(nanobind::module_& module) {
  static PyObject* first = nullptr;
  if (!first) {
    first = module.inc_ref().ptr();
    return false;
  }
  module.attr("__dict__").attr("update")(nanobind::handle(first).attr("__dict__"));
  return true;
}

}  // namespace

// nanobind's own initialisation gets another name: see below.
#define PyInit__native init_native
NB_MODULE(_native, module) {
  if (imported_before(module)) return;
  survive_cut_files();
  nanobind::set_leak_warnings(false);  // layers live as long as torch keeps their modules
  module.doc() = "The library libmase; use the packages mase and chop.";
  module.attr("__version__") = MASE_VERSION;
  mase::python::bind_errors(module);
  mase::python::bind_registries(module);
  mase::python::bind_formats(module);
  mase::python::bind_layers(module);
  mase::python::bind_graph(module);
  mase::python::bind_passes(module);
  mase::python::bind_checkpoints(module);
  mase::python::bind_data(module);
  mase::python::bind_experiment(module);
  mase::python::bind_compress(module);
  mase::python::bind_search(module);
  mase::python::bind_hardware(module);
  mase::python::bind_report(module);
  mase::python::bind_tokenizer(module);
  mase::python::bind_language(module);
}
#undef PyInit__native

// Interpreters below the main one would share objects that are not their own. They are refused
// before nanobind looks at them: it would take its types from them, and the main one's calls fail.
extern "C" NB_EXPORT PyObject* PyInit__native() {
  if (PyInterpreterState_GetID(PyInterpreterState_Get()) == 0) return init_native();
  PyErr_SetString(PyExc_ImportError,
                  "mase cannot be imported in a second interpreter of one process");
  return nullptr;
}
