// SPDX-License-Identifier: Apache-2.0
// Rows that go through a network piece by piece give every layer what a whole run gives it, also
// when layers change on the way.
#include "mase/passes/layer_stream.h"

#include <cmath>

#include "mase/ir/layer_text.h"
#include "mase/ir/op.h"
#include "mase/passes/calibration.h"
#include "mase/passes/observe.h"
#include "mase/run/network.h"
#include "passes/networks.h"

namespace mase::layer_stream_test {
namespace {

std::vector<Tensor> drawn_inputs(const Graph& graph, int64_t rows, bool tokens, uint64_t seed) {
  Random random(seed, "stream");
  std::vector<Tensor> inputs;
  for (const NodeId id : graph.placeholders()) {
    Shape shape = graph.node(id).sample_shape;
    shape.insert(shape.begin(), rows);
    Tensor tensor(shape);
    for (int64_t i = 0; i < tensor.numel(); ++i)
      tensor.mutable_data<float>()[i] =
          tokens ? static_cast<float>(random.below(200)) : static_cast<float>(random.normal());
    inputs.push_back(tensor);
  }
  return inputs;
}

double largest(const Tensor& tensor) {
  double most = 0;
  for (const float value : tensor.values<float>())
    most = std::max(most, std::fabs(static_cast<double>(value)));
  return most;
}

// Every node in turn, and some asked for again; layers are changed once they lie behind.
void expect_as_whole_runs(Graph graph, const std::vector<Tensor>& inputs) {
  LayerStream stream(inputs);
  int compared = 0;
  const std::vector<NodeId> order = graph.order();
  for (const NodeId id : order) {
    const Node& node = graph.node(id);
    if (!graph.module_of(node) || !op_of(graph, node)->product) continue;
    const NodeId source = graph.inputs_of(id).front();
    SCOPED_TRACE(node.name);
    Tensor whole;
    int64_t filled = 0;
    observe_nodes(graph, inputs, {source}, [&](NodeId, const Tensor& some) {
      Shape shape = some.shape();
      shape[0] = inputs[0].dim(0);
      if (filled == 0) whole = Tensor(shape);
      std::copy_n(some.to(DType::f32).data<float>(), some.numel(),
                  whole.mutable_data<float>() + filled);
      filled += some.numel();
    });
    const Tensor* piece = stream.result(graph, source);
    ASSERT_NE(piece, nullptr);
    ASSERT_EQ(piece->shape(), whole.shape());
    double worst = 0;
    for (int64_t i = 0; i < whole.numel(); ++i)
      worst = std::max(worst, std::fabs(whole.item(i) - piece->item(i)));
    EXPECT_LE(worst, 1e-5 * (1 + largest(whole)));
    ++compared;
    // The layer gets other weights: what comes behind must see them.
    Tensor& weight = *graph.module_of(graph.node(id))->find(op_of(graph, node)->product->weight);
    float* values = weight.mutable_data<float>();
    for (int64_t i = 0; i < weight.numel(); ++i) values[i] *= i % 3 ? 1.1f : 0.7f;
  }
  EXPECT_GT(compared, 0);
}

TEST(LayerStream, GivesWhatWholeRunsGive) {
  for (const char* name : {"jsc-toy", "lenet", "resnet18-cifar", "mobilenetv2"}) {
    SCOPED_TRACE(name);
    Graph graph = make_model(name);
    expect_as_whole_runs(graph, drawn_inputs(graph, 3, false, 1));
  }
  for (const char* name : {"llama_bf16", "mistral", "qwen3", "gpt2", "opt"}) {
    SCOPED_TRACE(name);
    Graph graph = graph_of_file(test::golden_path(std::string("language/") + name));
    expect_as_whole_runs(graph, drawn_inputs(graph, 5, true, 2));
  }
}

TEST(LayerStream, RandomNetworksToo) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    const Graph graph = test::random_graph(seed);
    std::map<std::string, int> calls;
    bool shared = false, products = false;
    for (const NodeId id : graph.order())
      if (const Module* module = graph.module_of(graph.node(id))) {
        shared = shared || ++calls[graph.node(id).target] > 1;
        products = products || module->op == "linear";
      }
    if (shared || !products) continue;  // a layer behind the place would change before it too
    expect_as_whole_runs(graph, drawn_inputs(graph, 300, false, seed));
  }
}

}  // namespace
}  // namespace mase::layer_stream_test
