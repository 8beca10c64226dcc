// SPDX-License-Identifier: Apache-2.0
// Every primitive of the registry, in every variant that the machine has, on drawn sizes, layouts,
// values and neighbours that are fused with it: results against its plain loops, gradients against
// their difference quotients, the same bits with two threads, and nothing read that nobody wrote
// (memory begins as NaN).
#include <cmath>

#include "mase/engine/trial.h"
#include "support/support.h"

namespace mase::engine::primitives_test {
namespace {

constexpr uint64_t rounds = 40;
// Under sanitizers, where each is slow, a variant is tried so often: many networks fit few of them.
constexpr int enough = test::sanitized ? 8 : 2 * rounds;

class EveryPrimitive : public testing::TestWithParam<std::string> {
 protected:
  const PrimitiveRecord& record() const { return find_primitive(GetParam()); }
};

double largest_of(const Array& array) {
  double largest = 0;
  for (const double value : array.data) largest = std::max(largest, std::abs(value));
  return largest;
}

TEST_P(EveryPrimitive, HasAPlainFormAndAGenerator) {
  EXPECT_FALSE(record().summary.empty());
  EXPECT_FALSE(variants_of(record()).empty());
  if (record().reference) {
    EXPECT_EQ(variants_of(record()).back().name, "reference");
  }
  if (record().generate) {
    EXPECT_TRUE(record().reference) << "nothing to compare it with";
  } else {
    EXPECT_FALSE(record().not_generated.empty()) << "why is it not tried out?";
  }
}

TEST_P(EveryPrimitive, AgreesWithItsPlainFormInEveryVariant) {
  if (!record().generate) GTEST_SKIP() << record().not_generated;
  for (const Variant& variant : variants_of(record())) {
    const bool supported = !variant.supported || variant.supported();
    int applied = 0;
    // What fits few of the drawn cases is looked for longer.
    const auto goes_on = [&](uint64_t seed) {
      return seed < rounds ? applied < enough : supported && applied == 0 && seed < 20 * rounds;
    };
    for (uint64_t seed = 0; goes_on(seed); ++seed) {
      std::vector<float> alone;
      for (const int threads : {1, 2}) {
        Trial trial(record(), {.seed = seed, .training = seed % 3 == 0, .threads = threads});
        if (!trial.exists() || !trial.prepare(variant)) break;
        ++applied;
        trial.run_forward();
        const std::vector<float> got = trial.result();
        if (threads == 2) {
          ASSERT_EQ(got, alone) << variant.name << ", seed " << seed << ", two threads\n"
                                << trial.description();
          break;
        }
        alone = got;
        const Array wanted = trial.expected();
        const double tolerance = 1e-6 + 2e-5 * largest_of(wanted);
        for (size_t i = 0; i < got.size(); ++i) {
          ASSERT_NEAR(got[i], static_cast<float>(wanted.data[i]), variant.exact ? 0 : tolerance)
              << variant.name << ", seed " << seed << ", value " << i << "\n"
              << trial.description();
        }
      }
    }
    EXPECT_TRUE(applied > 0 || !supported) << "'" << variant.name << "' was never tried";
  }
}

TEST_P(EveryPrimitive, HasTheGradientOfItsPlainForm) {
  if (!record().generate || !record().gradient) GTEST_SKIP() << "no gradient";
  int compared = 0;
  for (uint64_t seed = 0; seed < rounds; ++seed) {
    Trial trial(record(), {.seed = seed, .training = true, .threads = seed % 2 == 0 ? 1 : 2});
    if (!trial.exists() || !trial.has_gradient()) continue;
    for (const Variant& variant : variants_of(record()))
      if (trial.prepare(variant)) break;
    trial.run_forward();
    trial.seed_gradients();
    trial.run_backward();
    const Trial::Slopes slopes = trial.slopes();
    ASSERT_NEAR(slopes.gradients, slopes.quotient, 1e-6 + 1e-4 * slopes.scale)
        << "seed " << seed << "\n"
        << trial.description();
    ++compared;
  }
  EXPECT_TRUE(compared > 10 || GetParam() == "quantize") << compared;
}

INSTANTIATE_TEST_SUITE_P(All, EveryPrimitive,
                         testing::ValuesIn(Registry<PrimitiveRecord>::instance().names()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace mase::engine::primitives_test
