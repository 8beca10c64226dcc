// SPDX-License-Identifier: Apache-2.0
// What a primitive is: one record says how it runs, forward and backward. Primitives live in
// primitives/, need no header of their own, and are found by name through the registry.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "mase/base/registry.h"
#include "mase/engine/plan.h"

namespace mase::engine {

// A place a gradient goes to; tensor -1: nowhere. The first writer overwrites, later ones add.
struct Target {
  int tensor = -1;
  bool accumulate = false;
};

// What a primitive's gradient is written against.
class Backward {
 public:
  virtual ~Backward() = default;
  virtual Plan& plan() = 0;
  virtual bool wanted(int tensor) const = 0;  // whether it leads to a trained parameter
  virtual Target target(int tensor) = 0;
  // A gradient that is needed no more becomes that of a tensor of the same shape, whose values are
  // computed in its place, if that has none yet: half the memory to write.
  virtual void take_over(int tensor, int gradient) = 0;
  virtual void push(Step step) = 0;
};

struct PrimitiveRecord {
  static constexpr const char* kind = "primitive";
  std::string name;
  std::vector<std::string> aliases = {};
  std::string summary;
  std::function<Step(Plan& plan, Primitive& primitive)> forward;
  // Sends the gradient of the result to those of the inputs. Empty: there is none to send.
  std::function<void(Backward& backward, const Primitive& primitive, int gradient)> gradient = {};
};

const PrimitiveRecord& find_primitive(const std::string& name);

// The tensor that receives the gradient of `tensor`, made when first asked for.
int gradient_of(Plan& plan, int tensor);

}  // namespace mase::engine
