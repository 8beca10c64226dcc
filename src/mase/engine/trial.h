// SPDX-License-Identifier: Apache-2.0
// One primitive, with operands whose sizes, layouts and values are drawn by its record's generator,
// by itself or joined by the rules of fusion with what was drawn around it: what the sweeping test
// compares with the reference, and `ch bench primitives` times.
#pragma once

#include <map>
#include <optional>

#include "mase/base/random.h"
#include "mase/engine/lowerer.h"
#include "mase/engine/primitive.h"
#include "mase/formats/format.h"

namespace mase::engine {

// What the values of an operand are drawn from.
struct Values {
  double low = -2, high = 2;
  bool whole = false;  // whole numbers from low to high: indices, which have no gradient
};

class Trial {
 public:
  struct Options {
    uint64_t seed = 0;
    bool large = false;  // sizes as networks have them, instead of drawn ones
    int64_t kind = 0;    // large trials: of which kind
    bool training = false;
    bool few_bits = false;  // large trials: operands of at most 8 bits
    int threads = 1;
  };
  Trial(const PrimitiveRecord& record, const Options& options);
  Trial(const Trial&) = delete;  // steps refer to its plan
  Trial& operator=(const Trial&) = delete;

  // For generators. Sizes are drawn between two numbers; large trials take the third.
  int64_t size(int64_t least, int64_t most, int64_t large);
  bool coin(bool large = false);
  int64_t below(int64_t count, int64_t large = 0);
  bool few_bits();  // whether operands are to be rounded, for exact variants
  // Which of several kinds of operands, for variants that no single size fits; to be called first.
  int64_t kind(int64_t count);
  int64_t batch(int64_t large, int64_t most = 40);           // then: samples of the largest batch
  Slot activation(const Shape& sample, Values values = {});  // in a drawn layout
  Slot parameter(const Shape& shape, Values values = {});
  PackedTypePtr packed_type();  // one of all there are; large trials: of four bits
  Slot packed(const Shape& shape, const PackedTypePtr& type);  // drawn blocks
  // Of samples, or of each token: some of those are none.
  Slot labels(int64_t classes, const Shape& tokens = {});
  Slot rounded(Slot slot, int width, int frac);  // to fixed point
  // The samples of a placeholder, which the caller has.
  void samples(const Shape& sample);
  Slot beside(Slot slot);  // another operand that lies as this one
  Slot sample_rows(int64_t features);
  Slot fixed_norm(Slot x);  // a batch norm of running statistics behind it
  // This record's primitive as the gradient of a drawn one of another record. `whole`: on small
  // whole numbers, of which many are equal.
  Slot sent_by(const std::string& forward, bool whole = false);
  Lowerer& to() { return lowerer_; }
  Plan& plan() { return plan_; }
  // The gradient is no derivative: nothing to compare it with.
  void straight_through() { straight_through_ = true; }

  // Whether the generator found a case that the primitive takes.
  bool exists() const { return index_ >= 0; }
  int64_t kinds() const { return kinds_; }
  const Primitive& primitive() const { return plan_.primitives[static_cast<size_t>(index_)]; }
  bool has_gradient() const;

  // Makes the steps of this variant and their memory. False if it does not apply.
  bool prepare(const Variant& variant);
  void run_forward();
  void seed_gradients();  // drawn ones of the result, before each backward run
  void run_backward();

  std::vector<float> result() const;
  Array expected();  // by the reference
  // The derivative of the result, weighted by the drawn gradients, along a drawn direction of all
  // operands: by the reference's difference quotient, and by the gradients that were computed.
  struct Slopes {
    double quotient = 0, gradients = 0, scale = 0;
  };
  Slopes slopes();

  double multiply_adds() const;
  double bytes() const;             // of operands and result
  std::string shapes() const;       // "[256, 64]; [32, 64] => [256, 32]"
  std::string description() const;  // with layouts

 private:
  struct Operand {
    int tensor;
    std::vector<double> values;
    bool differentiable;
  };
  void draw_neighbours(Slot out);
  void draw_operands();
  std::vector<double> draw(int tensor, const Shape& shape);
  void write(int tensor, const std::vector<double>& values);
  Array expected_with(const std::vector<std::vector<double>>& moved);
  int64_t most_samples() const { return plan_.options.batch_size; }

  const PrimitiveRecord& record_;
  Options options_;
  Random random_;
  Plan plan_;
  Lowerer lowerer_;
  std::map<int, Values> values_;
  std::map<int, std::vector<uint8_t>> packed_;  // the blocks of packed operands
  std::vector<QuantizerPtr> quantizers_;
  std::vector<Operand> operands_;
  std::vector<double> ups_;  // gradients of the result
  int index_ = -1;
  int64_t kinds_ = 1;
  bool straight_through_ = false;
  Memory memory_;
  std::vector<std::shared_ptr<std::byte>> blocks_;
  std::vector<int64_t> counters_;
  Batch batch_;
  std::vector<float> samples_;
  std::vector<uint32_t> rows_;
  Samples input_{};
  StepResult step_result_;
  Run run_;
};

}  // namespace mase::engine
