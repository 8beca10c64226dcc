// SPDX-License-Identifier: Apache-2.0
// What a primitive is: one record says what it means, how it runs, forward and backward, and how it
// is tried out. Primitives live in primitives/, need no header of their own, and are found by name
// through the registry.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <typeindex>
#include <vector>

#include "mase/base/registry.h"
#include "mase/engine/plan.h"
#include "mase/ir/op.h"

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
  // Computes this primitive as the gradient of `tensor`, or adds it to that; nothing where no
  // gradient of it is wanted.
  virtual void send(const char* record, Primitive primitive, int tensor) = 0;
  // Computes it by the way: the tensor of its result, which is such a one.
  virtual int compute(const char* record, Primitive primitive, TensorInfo result) = 0;
};

// Operands and result of one run in row-major double precision, whatever their layout: a primitive
// says by plain loops what it means.
struct Reference {
  const Plan& plan;
  const Primitive& primitive;
  const Run& run;
  std::function<Array(int tensor)> read = {};  // what only the payload names
  std::vector<Array> in = {};
  Array weight = {}, bias = {};  // without values where there is none
  Array out = {};                // of its shape, all zero
};

// One way of computing a primitive.
struct Variant {
  std::string name;
  // Nothing where it does not apply: another shape, another instruction set.
  std::function<std::optional<Step>(Plan& plan, Primitive& primitive)> forward;
  bool exact = false;             // gives the very bits of the reference's values
  bool (*supported)() = nullptr;  // whether the machine has what it needs; null: any has
};

// For records whose results depend, sample by sample, on that sample alone.
inline bool each_sample_alone(const Primitive&) { return true; }

class Lowerer;
class Trial;

struct PrimitiveRecord {
  static constexpr const char* kind = "primitive";
  std::string name;
  std::vector<std::string> aliases = {};
  std::string summary;
  std::type_index payload;
  // The first that applies is taken. Behind them all stands the reference, which always does.
  std::vector<Variant> variants;
  std::function<void(Reference& call)> reference = {};
  bool accumulates = false;  // whether its variants can add to what the result holds
  // Sends the gradient of the result to those of the inputs. Empty: there is none to send.
  std::function<void(Backward& backward, const Primitive& primitive, int gradient)> gradient = {};
  // One such primitive with operands of drawn sizes, layouts and values, for the sweeping test and
  // `ch bench primitives`; a record without one says why.
  std::function<Slot(Trial& trial)> generate = {};
  std::string not_generated = {};
  // Whether a sample's result is the same whichever others are in the batch. Empty: it may not be.
  std::function<bool(const Primitive& primitive)> sample_by_sample = {};
  // What it can do to its result before that is written, in this order, each once at most, and
  // whether it can do this one; empty: any of them.
  std::vector<StageKind> stages = {};
  std::function<bool(const Plan& plan, const Primitive& primitive, const FusedStage& stage)> takes =
      {};
  // What it is to this operand, the result of another, where a stage is all it is.
  std::function<std::optional<FusedStage>(const Plan& plan, const Primitive& primitive,
                                          int operand)>
      as_stage = {};
  // Whether the result's values are some of the first operand's, moved: what those are rounded to,
  // these are too.
  bool moves_values = false;
  bool any_stride = false;  // rows of one value may lie side by side (CompileOptions::one_position)
  bool takes_packed = false;  // its weight may be packed; for all others it is widened
  // What its payload says beyond its name, for text: "+relu".
  std::function<std::string(const Plan& plan, const Primitive& primitive)> text = {};
  // Products added up in one forward run, where that is what takes the time.
  std::function<double(const Plan& plan, const Primitive& primitive)> multiply_adds = {};
  // For ops that ask for it by name: the primitive with the operands in the layouts it takes.
  std::function<Slot(Lowerer& to, const Value& attributes, const std::vector<Slot>& operands)>
      lower = {};
};

const PrimitiveRecord& find_primitive(const std::string& name);

// By the first variant that applies.
Step first_step(Plan& plan, Primitive& primitive);

// All variants, the reference last.
std::vector<Variant> variants_of(const PrimitiveRecord& record);

// The tensor that receives the gradient of `tensor`, made when first asked for.
int gradient_of(Plan& plan, int tensor);

}  // namespace mase::engine
