// SPDX-License-Identifier: Apache-2.0
#include "mase/cli/plugin.h"

#include <dlfcn.h>

#include <filesystem>
#include <string>

#include "mase/base/text.h"

namespace mase {
namespace {

namespace fs = std::filesystem;

std::string plugin_file(const Value& value) {
  const std::string& name = value.as_string("--plugin");
  if (!fs::exists(name)) throw Error("--plugin", "there is no file " + printable(name));
  return fs::absolute(name).string();  // dlopen looks for plain names elsewhere
}

void load_library(const std::string& path) {
  if (!dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL))
    throw Error("--plugin", fmt::format("{} cannot be loaded: {}", path, dlerror()));
}

// The few functions of Python's C interface that are needed, found at run time: ch itself is not
// linked with Python.
class Python {
 public:
  Python() {
    // The libraries of the package are linked against what is open here: global.
    library_ = *MASE_PYTHON_LIBRARY ? dlopen(MASE_PYTHON_LIBRARY, RTLD_NOW | RTLD_GLOBAL) : nullptr;
    if (!library_)
      throw Error("--plugin", "plug-ins in Python need the Python package and libpython",
                  "apt-get install python3-dev, then make python");
    find<void (*)(int)>("Py_InitializeEx")(0);
  }

  // Runs the code; what it leaves in the variable `fault` is the result.
  std::string run(const std::string& code) const {
    if (find<int (*)(const char*)>("PyRun_SimpleString")(code.c_str()) != 0)
      return "the interpreter could not run it";
    void* scope = find<void* (*)(const char*)>("PyImport_AddModule")("__main__");
    void* fault = find<void* (*)(void*, const char*)>("PyObject_GetAttrString")(scope, "fault");
    const char* text = fault ? find<const char* (*)(void*)>("PyUnicode_AsUTF8")(fault) : nullptr;
    return text ? text : "it left no result";
  }

  // Passes run on whatever thread, and take the lock themselves.
  void unlock() const { find<void* (*)()>("PyEval_SaveThread")(); }

 private:
  template <class Function>
  Function find(const char* name) const {
    void* found = dlsym(library_, name);
    if (!found) throw Error("--plugin", fmt::format("libpython has no {}", name));
    return reinterpret_cast<Function>(found);
  }

  void* library_;
};

void load_python(const std::vector<std::string>& files) {
  const Python python;
  const std::string tree =
      (fs::read_symlink("/proc/self/exe").parent_path().parent_path() / "python").string();
  for (const std::string& file : files) {
    const std::string fault =
        python.run(fmt::format("import sys\n"
                               "fault = ''\n"
                               "try:\n"
                               "    if {0} not in sys.path: sys.path.insert(0, {0})\n"
                               "    import mase\n"
                               "    mase.load_plugin({1})\n"
                               "except BaseException as error:\n"
                               "    fault = type(error).__name__ + ': ' + str(error)\n",
                               python_repr(Value(tree)), python_repr(Value(file))));
    if (!fault.empty()) throw Error(file, fault);
  }
  python.unlock();
}

}  // namespace

void load_plugins(const Value& files) {
  if (!files.is_list()) return;
  std::vector<std::string> scripts;
  for (const Value& value : files.as_list()) {
    const std::string path = plugin_file(value);
    if (ends_with(path, ".py"))
      scripts.push_back(path);
    else
      load_library(path);
  }
  if (!scripts.empty()) load_python(scripts);
}

}  // namespace mase
