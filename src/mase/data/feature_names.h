// SPDX-License-Identifier: Apache-2.0
// What the features of a sample are called: names of columns, or the places of an array
// ("pixel_0_3_7"), of which there may be millions and which are therefore made when asked for.
#pragma once

#include <string>
#include <vector>

#include "mase/base/tensor.h"
#include "mase/base/value.h"

namespace mase {

class FeatureNames {
 public:
  FeatureNames() = default;
  FeatureNames(std::vector<std::string> names);  // those of places are known as such
  FeatureNames(std::initializer_list<std::string> names)
      : FeatureNames(std::vector<std::string>(names)) {}
  static FeatureNames of_places(std::string prefix, Shape shape);

  size_t size() const { return prefix_.empty() ? names_.size() : places_; }
  std::string operator[](size_t index) const;
  bool operator==(const FeatureNames& other) const = default;

  Value to_value() const;
  static FeatureNames from_value(const Value& value, const std::string& what);

 private:
  std::vector<std::string> names_;
  std::string prefix_;
  Shape shape_;
  size_t places_ = 0;
};

}  // namespace mase
