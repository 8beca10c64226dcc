// SPDX-License-Identifier: Apache-2.0
#include "mase/base/late_library.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "mase/base/error.h"

namespace mase::late_library_test {
namespace {

TEST(LateLibrary, GivesFunctions) {
  const LateLibrary library("libm.so.6", "libc6");
  const auto cosine = library.function<double (*)(double)>("cos");
  EXPECT_EQ(cosine(0.5), std::cos(0.5));
}

TEST(LateLibrary, SaysWhatIsMissing) {
  const auto message = [](const auto& call) -> std::string {
    try {
      call();
      return "";
    } catch (const Error& error) {
      return error.what();
    }
  };
  EXPECT_EQ(message([] { LateLibrary("libnowhere.so.7", "libnowhere7"); }),
            "libnowhere.so.7: cannot be loaded; install it: apt-get install libnowhere7");
  EXPECT_EQ(message([] { LateLibrary("libm.so.6", "libc6").function<void (*)()>("no_such"); }),
            "libm.so.6: has no function no_such; it is of another version");
}

}  // namespace
}  // namespace mase::late_library_test
