// SPDX-License-Identifier: Apache-2.0
// Mistakes of the user and our own are two types; neither ends the caller's process.
#include "mase/base/error.h"

#include <gtest/gtest.h>

#include "mase/ir/evaluate.h"
#include "mase/models/model.h"

namespace mase::error_test {
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

TEST(Error, KnowsItsKindAndItsParts) {
  const Error unknown = Error("a", "no such key").as(Mistake::unknown_key), other("b", "too large");
  EXPECT_EQ(unknown.mistake(), Mistake::unknown_key);
  EXPECT_STREQ(unknown.what(), "a: no such key");
  EXPECT_EQ(other.mistake(), Mistake::other);
  // What is merged twice is told apart all the same.
  const Error all = Error::all({Error::all({unknown, other}), Error("c", "missing")});
  EXPECT_EQ(all.count(), 3);
  ASSERT_EQ(all.parts().size(), 3u);
  EXPECT_EQ(all.parts()[0].mistake(), Mistake::unknown_key);
  EXPECT_STREQ(all.parts()[2].what(), "c: missing");
  EXPECT_EQ(other.count(), 1);
  EXPECT_STREQ(other.parts().at(0).what(), "b: too large");
}

TEST(Error, SaysPlaceCauseAndRemedyOnOneLine) {
  EXPECT_STREQ(Error("a.toml:3", "no such key", "did you mean 'b'?").what(),
               "a.toml:3: no such key; did you mean 'b'?");
}

}  // namespace
}  // namespace mase::error_test
