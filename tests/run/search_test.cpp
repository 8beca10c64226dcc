// SPDX-License-Identifier: Apache-2.0
// Parts of a search's driver: splits by name, networks that are kept, digests of networks and rows.
#include "mase/models/model.h"
#include "mase/run/experiment.h"
#include "mase/run/search/search_identity.h"
#include "mase/run/search/search_kept.h"
#include "support/support.h"

namespace mase::search_test {
namespace {

Dataset small_data() {
  Dataset data;
  data.name = "small";
  data.test.x = Tensor::of<float>({2, 1}, std::vector<float>{1, 2});
  return data;
}

TEST(SearchRun, AnUnknownSplitIsNoSplit) {
  const Dataset data = small_data();
  EXPECT_EQ(split_called(data, "test").rows(), 2);
  for (const char* name : {"val", "Test", "", "tset"})
    EXPECT_THROW(split_called(data, name), Error);
}

// However many trials there were, the networks of the front are at hand.
TEST(SearchRun, TheBestNetworksAreKept) {
  KeptNetworks kept;
  const Graph graph = make_model("jsc-tiny");
  kept.take({-1}, {0, 0.5}, graph);
  for (int i = 0; i < 300; ++i) kept.take({static_cast<double>(i)}, {1.0 + i % 7, 1.0 + i}, graph);
  EXPECT_TRUE(kept.find({-1}));
  EXPECT_EQ(kept.size(), 1u);
  kept.take({1000}, {0.5, 0.25}, graph);  // neither is better
  EXPECT_EQ(kept.size(), 2u);
  kept.take({1001}, {0, 0.25}, graph);  // better than both
  EXPECT_EQ(kept.size(), 1u);
  EXPECT_FALSE(kept.find({-1}));
}

TEST(SearchRun, DigestsSeeWeightsAndRows) {
  const Graph graph = make_model("jsc-tiny");
  Graph other = graph;
  for (auto& [path, module] : other.modules())
    for (auto& [name, tensor] : module.parameters) tensor.mutable_raw()[0] ^= std::byte{1};
  EXPECT_EQ(network_digest(graph, false), network_digest(other, false));
  EXPECT_NE(network_digest(graph, true), network_digest(other, true));
  other = graph;
  other.name = "another name";
  EXPECT_EQ(network_digest(graph, true), network_digest(other, true));
  const Split rows = small_data().test;
  EXPECT_NE(rows_digest(rows, 1), rows_digest(rows, 2));
}

}  // namespace
}  // namespace mase::search_test
