// SPDX-License-Identifier: Apache-2.0
// A shared library that is loaded when it is first needed. libcurl and libpq bring some thirty
// others with them, which a program that neither downloads nor asks a database should not wait for;
// and where one is missing, only what needs it fails.
#pragma once

#include <string>

namespace mase {

// Whether there is one to load; what it brings stays loaded.
bool library_exists(const std::string& name);

class LateLibrary {
 public:
  // `package`: what to install where there is no such library.
  LateLibrary(const std::string& name, const std::string& package);

  // The function of this name, typed by its declaration: function<decltype(&curl_easy_init)>(...).
  template <typename Pointer>
  Pointer function(const char* name) const {
    return reinterpret_cast<Pointer>(address(name));
  }

 private:
  void* address(const char* name) const;

  std::string name_;
  void* handle_;  // never closed: other threads may be inside it when the program ends
};

}  // namespace mase
