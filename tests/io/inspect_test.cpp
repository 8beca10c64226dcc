// SPDX-License-Identifier: Apache-2.0
// ch inspect, as it is typed.
#include "mase/base/value.h"
#include "mase/io/networks/checkpoint.h"
#include "support/support.h"

namespace mase::inspect_test {
namespace {

TEST(Inspect, ListsTensorsTotalsAndTheRest) {
  const test::RunResult result = test::ch({"inspect", test::golden_path("torch/jsc-tiny.ckpt")});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_HAS(result.out, "model.seq_blocks.2.weight");
  EXPECT_HAS(result.out, "-1.049   -0.02182");
  EXPECT_HAS(result.out,
             "23 tensors, 392 elements, 1.5 KB; of the network: 7 tensors, 150 elements");
  EXPECT_HAS(result.out, "pytorch-lightning_version: 2.1.0");
  EXPECT_HAS(result.out, "betas: [0.9, 0.999]");
  const test::RunResult plain =
      test::ch({"inspect", test::golden_path("torch/jsc-tiny.ckpt"), "--stats", "no"});
  EXPECT_EQ(plain.out.find("zeros %"), std::string::npos);
}

TEST(Inspect, PrintsJsonAndValues) {
  const std::string path = test::golden_path("torch/odd.pt");
  const test::RunResult json = test::ch({"inspect", path, "--json"});
  const Value value = parse_json(json.out, "out");
  EXPECT_EQ(value["type"], Value("pt"));
  EXPECT_EQ(value["totals"]["tensors"], Value(14));
  EXPECT_EQ(value["tensors"].as_list()[3]["mean"], Value(2.0));
  EXPECT_HAS(test::ch({"inspect", path, "--tensor", "f64"}).out, "tensor([[ 0.3474, -2.0029],");
  const test::RunResult unknown = test::ch({"inspect", path, "--tensor", "halff"});
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_HAS(unknown.err, "did you mean 'half'?");
}

TEST(Inspect, HostileNamesDoNotReachTheTerminal) {
  const std::string folder = test::temporary_folder();
  save_safetensors(folder + "/a.safetensors", {{"\x1b[2Jname\n", Tensor::scalar(1)}},
                   Dict{{"\x1b]0;title\x07", "\x1b[31m"}});
  const test::RunResult result = test::ch({"inspect", folder + "/a.safetensors"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out.find('\x1b'), std::string::npos);
  EXPECT_HAS(result.out, "\\x1b[2Jname\\x0a");
  EXPECT_HAS(result.out, "\\x1b]0;title\\x07: \\x1b[31m");
}

TEST(Inspect, ReadsNumpyFiles) {
  const std::string folder = test::temporary_folder();
  const test::RunResult made = test::run(
      {"/usr/bin/python3", "-c",
       "import numpy as n\n"
       "n.save('a.npy', n.arange(6, dtype='f4').reshape(2, 3))\n"
       "n.savez_compressed('b.npz', x=n.ones((3, 2), order='F'), y=n.arange(3), z=n.array(['a']))"},
      folder);
  if (made.exit_code != 0) GTEST_SKIP() << "python3-numpy is not installed";
  EXPECT_HAS(test::ch({"inspect", folder + "/a.npy"}).out, "array  float32  [2, 3]    0   2.5");
  const std::string out = test::ch({"inspect", folder + "/b.npz"}).out;
  EXPECT_HAS(out, "x     float64  [3, 2]");
  EXPECT_HAS(out, "y     int64    [3]");
  EXPECT_HAS(out, "not a number");
}

}  // namespace
}  // namespace mase::inspect_test
