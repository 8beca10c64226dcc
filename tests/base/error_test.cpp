// SPDX-License-Identifier: Apache-2.0
// Mistakes of the user and our own are two types; neither ends the caller's process.
#include "mase/base/error.h"

#include <gtest/gtest.h>

#include "mase/ir/evaluate.h"
#include "mase/models/model.h"

namespace mase {
namespace {

TEST(InternalError, IsThrownByAFailedCheckAndNamesThePlace) {
  try {
    MASE_CHECK(1 + 1 == 3, "sum of {}", 2);
    FAIL() << "no exception";
  } catch (const InternalError& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("internal error at "), std::string::npos) << text;
    EXPECT_NE(text.find("1 + 1 == 3: sum of 2"), std::string::npos) << text;
  }
}

TEST(InternalError, IsNoErrorOfTheUser) {
  EXPECT_FALSE((std::is_base_of_v<Error, InternalError>));
  EXPECT_FALSE((std::is_base_of_v<InternalError, Error>));
}

TEST(InternalError, ACallWithoutInputsLeavesTheCallerAlive) {
  const Graph graph = make_model("jsc-toy");
  EXPECT_THROW(evaluate(graph, {}), InternalError);
  EXPECT_EQ(evaluate(graph, {Array({2, 16}, 0.5)})[0].shape, (Shape{2, 5}));  // and still usable
}

TEST(Error, SaysPlaceCauseAndRemedyOnOneLine) {
  EXPECT_STREQ(Error("a.toml:3", "no such key", "did you mean 'b'?").what(),
               "a.toml:3: no such key; did you mean 'b'?");
}

}  // namespace
}  // namespace mase
