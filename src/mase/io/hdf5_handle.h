// SPDX-License-Identifier: Apache-2.0
// HDF5 identifiers that close themselves, and HDF5's error stack as one line.
#pragma once

#include <hdf5.h>

#include <string>
#include <utility>

#include "mase/base/error.h"

namespace mase::hdf5 {

class Handle {
 public:
  Handle() = default;
  Handle(hid_t id, herr_t (*close)(hid_t)) : id_(id), close_(close) {}
  Handle(Handle&& other) noexcept { *this = std::move(other); }
  Handle& operator=(Handle&& other) noexcept {
    std::swap(id_, other.id_);
    std::swap(close_, other.close_);
    return *this;
  }
  ~Handle() {
    if (id_ >= 0) close_(id_);
  }
  hid_t get() const { return id_; }
  explicit operator bool() const { return id_ >= 0; }

 private:
  hid_t id_ = -1;
  herr_t (*close_)(hid_t) = nullptr;
};

inline Handle file(hid_t id) { return {id, H5Fclose}; }
inline Handle dataset(hid_t id) { return {id, H5Dclose}; }
inline Handle type(hid_t id) { return {id, H5Tclose}; }
inline Handle space(hid_t id) { return {id, H5Sclose}; }
inline Handle properties(hid_t id) { return {id, H5Pclose}; }
inline Handle group(hid_t id) { return {id, H5Gclose}; }

// HDF5 prints its errors on the terminal by itself; within a guard it does not.
class Silence {
 public:
  Silence() {
    H5Eget_auto2(H5E_DEFAULT, &function_, &data_);
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  }
  ~Silence() { H5Eset_auto2(H5E_DEFAULT, function_, data_); }
  Silence(const Silence&) = delete;
  Silence& operator=(const Silence&) = delete;

 private:
  H5E_auto2_t function_ = nullptr;
  void* data_ = nullptr;
};

// The innermost message of the last failure, such as "truncated file: eof = 800, ...".
inline std::string last_failure() {
  std::string text;
  H5Ewalk2(
      H5E_DEFAULT, H5E_WALK_DOWNWARD,
      [](unsigned, const H5E_error2_t* error, void* out) -> herr_t {
        if (error->desc && *error->desc) *static_cast<std::string*>(out) = error->desc;
        return 0;
      },
      &text);
  return text.empty() ? "unknown reason" : text;
}

}  // namespace mase::hdf5
