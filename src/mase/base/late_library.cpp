// SPDX-License-Identifier: Apache-2.0
#include "mase/base/late_library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include "mase/base/error.h"

namespace mase {

bool library_exists(const std::string& name) {
  return ::dlopen(name.c_str(), RTLD_LAZY | RTLD_LOCAL) != nullptr;
}

LateLibrary::LateLibrary(const std::string& name, const std::string& package)
    : name_(name), handle_(::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)) {
  if (!handle_)
    throw Error(name, "cannot be loaded", fmt::format("install it: apt-get install {}", package));
}

void* LateLibrary::address(const char* name) const {
  void* found = ::dlsym(handle_, name);
  if (!found) throw Error(name_, fmt::format("has no function {}; it is of another version", name));
  return found;
}

}  // namespace mase
