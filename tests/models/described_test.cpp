// SPDX-License-Identifier: Apache-2.0
// Networks in TOML: what they may say, and one line with place, cause and remedy when it is wrong.
#include "mase/ir/evaluate.h"
#include "mase/models/model.h"
#include "support/support.h"

namespace mase::described_test {
namespace {

std::string write_network(const std::string& text) {
  const std::string path = test::temporary_folder() + "/net.toml";
  test::write(path, text);
  return path;
}

Graph network(const std::string& text, const ModelInputs& inputs = {}) {
  return make_model(write_network(text), inputs);
}

TEST(Described, TheLabsNetworkIsTheBuiltInOne) {
  const Graph described = make_model(test::source_path("configs/jsc-10x.toml"));
  const Graph built_in = make_model("jsc-10x");
  EXPECT_EQ(described.text(), built_in.text());
  EXPECT_EQ(described.parameter_count(), 3363);
  EXPECT_EQ(to_json(graph_to_value(described)), to_json(graph_to_value(built_in)));
}

TEST(Described, SkipNetworkIsSummarisedPrintedAndVerified) {
  const Graph graph = make_model(test::source_path("configs/skip.toml"));
  verify(graph);
  size_t layers = 0;
  for (const NodeId id : graph.order())
    layers += graph.node(id).kind == NodeKind::call_module ||
              graph.node(id).kind == NodeKind::call_function;
  EXPECT_EQ(layers, 14u);
  const test::RunResult result = test::ch(
      {"summary", "configs/skip.toml", "--graph", "--batch-size", "8"}, test::source_path(""));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  test::expect_golden(result.out, "models/skip.summary.txt");
  // It also runs: the skip adds what it should.
  Array x(Shape{3, 16}, 0.5);
  EXPECT_EQ(evaluate(graph, {x}).at(0).shape, (Shape{3, 5}));
}

TEST(Described, LayersMayComeInAnyOrder) {
  const Graph graph = network(R"(
input = [4]
outputs = ["last"]
[[layers]]
name = "last"
function = "add"
inputs = ["a", "b"]
[[layers]]
name = "b"
type = "Tanh"
inputs = "a"
[[layers]]
name = "a"
type = "Linear"
out_features = 3
inputs = ["x"]
)");
  EXPECT_EQ(graph.text(), R"(graph():
    %x : [num_users=1] = placeholder[target=x]
    %a : [num_users=2] = call_module[target=a](args = (%x,), kwargs = {})
    %b : [num_users=1] = call_module[target=b](args = (%a,), kwargs = {})
    %last : [num_users=1] = call_function[target=operator.add](args = (%a, %b), kwargs = {})
    return last
)");
}

TEST(Described, DataSetGivesWhatIsLeftOut) {
  ModelInputs inputs;
  inputs.sample_shape = {7};
  inputs.outputs = 3;
  const Graph graph = network("seq_blocks = [{type = \"Linear\"}]", inputs);
  EXPECT_EQ(graph.parameter_count(), 7 * 3 + 3);
}

TEST(Described, SeveralInputsAndOutputs) {
  const Graph graph = network(R"(
input = {left = [4], right = [4]}
outputs = ["sum", "product"]
[[layers]]
name = "sum"
function = "add"
inputs = ["left", "right"]
[[layers]]
name = "product"
function = "mul"
inputs = ["left", "right"]
)");
  EXPECT_EQ(graph.placeholders().size(), 2u);
  EXPECT_EQ(graph.outputs().size(), 2u);
}

struct Broken {
  const char* what;
  const char* text;
  int line;           // 0: the file as a whole
  const char* cause;  // a part of it
  const char* remedy;
};

const Broken broken[] = {
    {"unknown layer", "input = [16]\n[[seq_blocks]]\ntype = \"Linaer\"\n", 3, "unknown op 'Linaer'",
     "did you mean 'Linear'?"},
    {"misspelt key", "input = [16]\n[[seq_blocks]]\ntype = \"Linear\"\nout_feature = 5\n", 4,
     "unknown key 'out_feature'", "did you mean 'out_features'?"},
    {"wrong shape",
     "input = [16]\n[[seq_blocks]]\ntype = \"Linear\"\nout_features = 8\n[[seq_blocks]]\n"
     "type = \"Linear\"\nin_features = 9\nout_features = 5\n",
     5, "Linear wants 9 input features, got shape [2, 8]", "set in_features to 8"},
    {"cycle",
     "input = [4]\n[[layers]]\nname = \"a\"\ntype = \"ReLU\"\ninputs = [\"b\"]\n"
     "[[layers]]\nname = \"b\"\ntype = \"Tanh\"\ninputs = [\"a\"]\n",
     9, "the network has a cycle through 'a'", "a layer cannot take its own result"},
    {"duplicate name",
     "input = [4]\n[[layers]]\nname = \"a\"\ntype = \"ReLU\"\n[[layers]]\nname = \"a\"\n"
     "type = \"Tanh\"\n",
     5, "two layers have this name", "names must be unique"},
    {"missing input",
     "input = [4]\n[[layers]]\nname = \"first\"\ntype = \"ReLU\"\n[[layers]]\nname = \"sum\"\n"
     "function = \"add\"\ninputs = [\"first\", \"frist\"]\n",
     8, "unknown input 'frist'", "did you mean 'first'?"},
    {"negative size", "input = [16]\n[[seq_blocks]]\ntype = \"Linear\"\nout_features = -5\n", 4,
     "-5 is too small", "the least is 0"},
    {"wrong type", "input = [16]\n[[seq_blocks]]\ntype = \"Linear\"\nout_features = \"five\"\n", 4,
     "expected an integer, got text", "write out_features = 16"},
    {"empty file", "", 1, "the file describes no layers", "add [[seq_blocks]]"},
    {"not TOML", "input = [16\nhello there\n", 2, "", ""},
    // Further mistakes of the same kinds.
    {"missing size", "input = [16]\n[[seq_blocks]]\ntype = \"Linear\"\n", 2,
     "'out_features' is missing", "give the number of features"},
    {"two inputs wanted", "input = [4]\n[[layers]]\nname = \"s\"\nfunction = \"add\"\n", 2,
     "takes two operands, got 1", "give two inputs"},
    {"shapes that do not fit",
     "input = [4]\n[[layers]]\nname = \"a\"\ntype = \"Linear\"\nout_features = 3\n[[layers]]\n"
     "name = \"s\"\nfunction = \"add\"\ninputs = [\"a\", \"x\"]\n",
     6, "shapes [2, 3] and [2, 4] do not fit together", "sizes must agree from the right"},
    {"huge layer",
     "input = [16]\n[[seq_blocks]]\ntype = \"Linear\"\nout_features = 4000000000000\n", 2,
     "more than 2^30 parameters", "use smaller layers"},
    {"overflowing layer",
     "input = [16]\n[[seq_blocks]]\ntype = \"Linear\"\nout_features = 9223372036854775807\n", 2,
     "too many elements", ""},
    {"overflowing padding",
     "input = [4]\n[[layers]]\nname = \"p\"\nfunction = \"pad\"\n"
     "pad = [9223372036854775807, 9223372036854775807]\n",
     2, "a padding of 9223372036854775807 indices", "take a smaller one"},
    {"no input shape", "[[seq_blocks]]\ntype = \"ReLU\"\n", 1,
     "the shape of the input is not known", "add input = [16]"},
    {"class as function", "input = [4]\n[[layers]]\nname = \"n\"\nfunction = \"batch_norm1d\"\n", 4,
     "'batch_norm1d' is no function", "write type = \"BatchNorm1d\""},
    {"two questions", "input = [4]\n[[seq_blocks]]\ntype = \"ReLU\"\nfunction = \"relu\"\n", 2,
     "'type' and 'function' are both given", ""},
    {"unread layer",
     "input = [4]\n[[layers]]\nname = \"lost\"\ntype = \"ReLU\"\n[[layers]]\nname = \"kept\"\n"
     "type = \"Tanh\"\ninputs = [\"x\"]\n",
     2, "nothing reads its result", "name it in outputs"},
    {"unknown table", "input = [4]\n[[blocks]]\ntype = \"ReLU\"\n", 2, "unknown key 'blocks'", ""},
};

TEST(Described, BrokenNetworksGiveOneLine) {
  for (const Broken& network : broken) {
    SCOPED_TRACE(network.what);
    const std::string path = write_network(network.text);
    const test::RunResult result = test::ch({"summary", path});
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_EQ(result.out, "");
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    const std::string place = fmt::format("{}:{}", path, network.line);
    EXPECT_NE(result.err.find(place), std::string::npos) << result.err << "wanted " << place;
    EXPECT_NE(result.err.find(network.cause), std::string::npos) << result.err;
    EXPECT_NE(result.err.find(network.remedy), std::string::npos) << result.err;
    EXPECT_NE(result.err.find("; "), std::string::npos) << "no remedy: " << result.err;
  }
}

TEST(Described, MissingFileIsOneLine) {
  const test::RunResult result = test::ch({"summary", "/nowhere/net.toml"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_NE(result.err.find("/nowhere/net.toml"), std::string::npos) << result.err;
}

TEST(Described, LongChainsWrittenBackwardsDoNotExhaustTheStack) {
  std::string text = "input = [4]\noutputs = [\"l1999\"]\n";
  for (int i = 1999; i > 0; --i)
    text +=
        fmt::format("[[layers]]\nname = \"l{}\"\ntype = \"ReLU\"\ninputs = [\"l{}\"]\n", i, i - 1);
  text += "[[layers]]\nname = \"l0\"\ntype = \"ReLU\"\ninputs = [\"x\"]\n";
  EXPECT_EQ(network(text).order().size(), 2002u);
}

TEST(Described, BlocksAreRepeated) {
  const Graph graph = network(R"(
input = [4]
[[layers]]
name = "first"
type = "Linear"
out_features = 3
[[layers]]
name = "body"
repeat = 2
layers = [
  {name = "fc", type = "Linear", out_features = 3},
  {name = "twice", repeat = 2, layers = [{name = "act", type = "ReLU"}]},
  {name = "sum", function = "add", inputs = ["twice", "input"]},
]
[[layers]]
name = "both"
function = "add"
inputs = ["body", "first"]
)");
  EXPECT_EQ(graph.text(), R"(graph():
    %x : [num_users=1] = placeholder[target=x]
    %first : [num_users=3] = call_module[target=first](args = (%x,), kwargs = {})
    %body_0_fc : [num_users=1] = call_module[target=body.0.fc](args = (%first,), kwargs = {})
    %body_0_twice_0_act : [num_users=1] = call_module[target=body.0.twice.0.act](args = (%body_0_fc,), kwargs = {})
    %body_0_twice_1_act : [num_users=1] = call_module[target=body.0.twice.1.act](args = (%body_0_twice_0_act,), kwargs = {})
    %body_0_sum : [num_users=2] = call_function[target=operator.add](args = (%body_0_twice_1_act, %first), kwargs = {})
    %body_1_fc : [num_users=1] = call_module[target=body.1.fc](args = (%body_0_sum,), kwargs = {})
    %body_1_twice_0_act : [num_users=1] = call_module[target=body.1.twice.0.act](args = (%body_1_fc,), kwargs = {})
    %body_1_twice_1_act : [num_users=1] = call_module[target=body.1.twice.1.act](args = (%body_1_twice_0_act,), kwargs = {})
    %body_1_sum : [num_users=1] = call_function[target=operator.add](args = (%body_1_twice_1_act, %body_0_sum), kwargs = {})
    %both : [num_users=1] = call_function[target=operator.add](args = (%body_1_sum, %first), kwargs = {})
    return both
)");
}

TEST(Described, BrokenBlocksAreNamed) {
  const auto fault = [](const std::string& block) {
    try {
      network("input = [4]\n[[layers]]\n" + block);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_NE(
      fault("name = \"a\"\nrepeat = 0\nlayers = [{name = \"b\", type = \"ReLU\"}]").find("repeat"),
      std::string::npos);
  EXPECT_NE(fault("name = \"a\"\nrepeat = 2\nlayers = []").find("a block without layers"),
            std::string::npos);
  EXPECT_NE(
      fault("name = \"a\"\nrepeat = 2\nlayers = [{type = \"ReLU\"}]").find("'name' is missing"),
      std::string::npos);
  EXPECT_NE(fault("name = \"a\"\nrepeat = 2\ntimes = 3\nlayers = []").find("times"),
            std::string::npos);
}

TEST(Described, AttentionToItself) {
  const char* text = R"(
input = [6, 4]
[[layers]]
name = "attention"
type = "MultiheadAttention"
num_heads = 2
batch_first = true
)";
  const Graph alone = network(text);
  const Graph listed = network(text + std::string("inputs = [\"x\", \"x\", \"x\"]\n"));
  EXPECT_EQ(alone.text(), listed.text());
}

TEST(Described, SamplesComeFirstForAttention) {
  const char* text =
      "input = [6, 4]\n[[layers]]\nname = \"attention\"\ntype = \"MultiheadAttention\"\n";
  EXPECT_TRUE(network(text).modules().at("attention").attributes["batch_first"].as_bool());
  EXPECT_FALSE(network(text + std::string("batch_first = false\n"))
                   .modules()
                   .at("attention")
                   .attributes["batch_first"]
                   .as_bool());
}

TEST(Described, AClassOfSeveralLayersIsThem) {
  const Graph block = network(R"(
name = "n"
input = [6, 4]
[[layers]]
name = "encoder"
type = "TransformerEncoderLayer"
d_model = 4
nhead = 2
dim_feedforward = 8
[[layers]]
name = "fc"
type = "Linear"
out_features = 3
)");
  const Graph written = network(R"(
name = "n"
input = [6, 4]
layers = [
  {name = "encoder.self_attn", type = "MultiheadAttention", num_heads = 2, inputs = ["x", "x", "x"]},
  {name = "encoder.dropout1", type = "Dropout", p = 0.1},
  {name = "encoder.attended", function = "add", inputs = ["x", "encoder.dropout1"]},
  {name = "encoder.norm1", type = "LayerNorm", normalized_shape = 4},
  {name = "encoder.linear1", type = "Linear", out_features = 8},
  {name = "encoder.activation", function = "relu"},
  {name = "encoder.dropout", type = "Dropout", p = 0.1},
  {name = "encoder.linear2", type = "Linear", out_features = 4},
  {name = "encoder.dropout2", type = "Dropout", p = 0.1},
  {name = "encoder.sum", function = "add", inputs = ["encoder.norm1", "encoder.dropout2"]},
  {name = "encoder.norm2", type = "LayerNorm", normalized_shape = 4},
  {name = "fc", type = "Linear", out_features = 3}]
)");
  EXPECT_EQ(block.text(), written.text());
  EXPECT_EQ(to_json(graph_to_value(block)), to_json(graph_to_value(written)));
  // PyTorch's names of several of them, wherever they stand.
  const Graph two = network(
      "input = [6, 4]\nseq_blocks = [{type = \"TransformerEncoder\", d_model = 4, nhead = 2, "
      "num_layers = 2, norm_first = true}]\n");
  for (const char* path : {"seq_blocks.0.layers.0.self_attn", "seq_blocks.0.layers.1.linear2"})
    EXPECT_TRUE(two.modules().count(path)) << path;
}

TEST(Described, MistakesInAClassOfSeveralLayers) {
  const auto fault = [](const std::string& keys) -> std::string {
    try {
      network("input = [6, 4]\n[[layers]]\nname = \"e\"\ntype = \"TransformerEncoderLayer\"\n" +
              keys);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(fault("d_model = 4\nnhead = 2\n"), "");
  EXPECT_NE(fault("nhead = 2\n").find("d_model"), std::string::npos);
  EXPECT_NE(fault("d_model = 4\nnhead = 2\nheads = 2\n").find("net.toml:7"), std::string::npos);
  EXPECT_NE(fault("d_model = 5\nnhead = 5\n").find("net.toml:2"), std::string::npos);
  EXPECT_NE(fault("d_model = 4\nnhead = 2\nbatch_first = false\n").find("samples come first"),
            std::string::npos);
  EXPECT_NE(fault("d_model = 4\nnhead = 2\ninputs = [\"x\", \"x\"]\n").find("takes one input"),
            std::string::npos);
}

TEST(Described, SeveralResults) {
  const Graph graph = network(R"(
input = [6, 4]
[[layers]]
name = "attention"
type = "MultiheadAttention"
num_heads = 2
batch_first = true
inputs = ["x", "x", "x"]
[[layers]]
name = "gate"
function = "chunk"
chunks = 2
dim = -1
result = 1
)");
  EXPECT_EQ(infer_shapes(graph, 5)[static_cast<size_t>(graph.outputs()[0])], (Shape{5, 6, 2}));
  EXPECT_NE(graph.text().find("%gate : [num_users=1] = call_function[target=torch.chunk](args = "
                              "(%getitem,), kwargs = {chunks: 2, dim: -1})"),
            std::string::npos)
      << graph.text();
}

}  // namespace
}  // namespace mase::described_test
