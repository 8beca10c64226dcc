// SPDX-License-Identifier: Apache-2.0
#include "mase/io/networks/checkpoint.h"

#include <filesystem>
#include <map>

#include "mase/ir/evaluate.h"
#include "mase/models/model.h"
#include "support/support.h"

namespace mase::checkpoint_test {
namespace {

constexpr const char* networks[] = {"jsc-tiny", "jsc-toy", "jsc-10x", "jsc-toy10x"};

std::string torch_path(const std::string& name) { return test::golden_path("torch/" + name); }

bool known(const std::string& model) { return Registry<ModelRecord>::instance().find(model); }

std::string fault(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Checkpoint, EveryGoldenGivesPyTorchsLogits) {
  for (const char* name : networks) {
    ASSERT_TRUE(known(name)) << name;
    TensorTable expected =
        load_safetensors(torch_path(std::string(name) + ".expected.safetensors"));
    const std::map<std::string, Tensor> golden(expected.begin(), expected.end());
    for (const char* ending : {".ckpt", ".pt"}) {
      Graph graph = make_model(name);
      const std::string path = torch_path(std::string(name) + ending);
      const LoadReport report = load_into(graph, load_checkpoint(path), path);
      EXPECT_EQ(report.taken.size(), state_dict(graph).size());
      const Array logits = evaluate(graph, {Array::from(golden.at("x"))})[0];
      ASSERT_EQ(logits.shape, golden.at("logits").shape());
      for (int64_t i = 0; i < golden.at("logits").numel(); ++i)
        EXPECT_NEAR(logits.data[static_cast<size_t>(i)], golden.at("logits").item(i), 1e-5)
            << path << " " << i;
    }
  }
}

TEST(Checkpoint, MismatchesAreListedSideBySide) {
  Graph graph = make_model("jsc-10x");
  const TensorTable before = state_dict(graph);
  const std::string path = torch_path("jsc-toy.ckpt");
  const Checkpoint checkpoint = load_checkpoint(path);
  const std::string message = fault([&] {
    load_into(graph, checkpoint, path, false, [](const TensorTable&) { return "jsc-toy"; });
  });
  EXPECT_NE(message.find("is this a jsc-toy checkpoint?"), std::string::npos) << message;
  EXPECT_NE(message.find("checkpoint has 'model.seq_blocks.2.weight' [8, 16]; the network jsc-10x "
                         "wants [60, 16]"),
            std::string::npos)
      << message;
  EXPECT_NE(message.find("--load-partial"), std::string::npos);
  const TensorTable after = state_dict(graph);
  for (size_t i = 0; i < before.size(); ++i)
    EXPECT_TRUE(before[i].second.same_bits(after[i].second)) << "a refusal changes nothing";

  const LoadReport report = load_into(graph, checkpoint, path, true);
  EXPECT_EQ(report.taken.size() + report.mismatched.size() + report.missing.size(), before.size());
  EXPECT_EQ(report.taken[0], "seq_blocks.0.weight");
}

TEST(Checkpoint, MissingAndUnexpectedNamesStandBesideTheNearest) {
  Graph graph = make_model("jsc-tiny");
  Checkpoint checkpoint = load_checkpoint(torch_path("jsc-tiny.ckpt"));
  for (auto& [name, tensor] : checkpoint.tensors)
    if (name == "seq_blocks.2.weight") name = "seq_blocks.2.weigth";
  const std::string message = fault([&] { load_into(graph, checkpoint, "x.ckpt"); });
  EXPECT_NE(message.find("'seq_blocks.2.weight' [5, 16]"), std::string::npos) << message;
  EXPECT_NE(message.find("'model.seq_blocks.2.weigth' [5, 16]"), std::string::npos) << message;
}

TEST(Checkpoint, BatchCountsMayBeMissing) {
  Graph graph = make_model("jsc-tiny");
  Checkpoint checkpoint = load_checkpoint(torch_path("jsc-tiny.ckpt"));
  std::erase_if(checkpoint.tensors,
                [](const auto& item) { return item.first == "seq_blocks.0.num_batches_tracked"; });
  EXPECT_EQ(fault([&] { load_into(graph, checkpoint, "x.ckpt"); }), "no error");
}

TEST(Checkpoint, ANetworkCalledModelKeepsItsPrefix) {
  Graph graph;
  const NodeId x = graph.add_placeholder("x", {4});
  const Value attributes = Dict{{"in_features", 4}, {"out_features", 2}};
  graph.add_output(
      {graph.add_module("model.fc", make_module("linear", attributes, 1, "model.fc"), {x})});
  const std::string path = test::temporary_folder() + "/a.pt";
  save_state_dict(path, state_dict(graph));
  EXPECT_EQ(load_into(graph, load_checkpoint(path), path).taken.size(), 2u);
}

TEST(Checkpoint, TypeIsGuessedFromContentAndCheckedIfGiven) {
  const std::string folder = test::temporary_folder();
  Graph graph = make_model("jsc-tiny");
  const TensorTable state = state_dict(graph);
  save_lightning(folder + "/a", state);
  save_state_dict(folder + "/b", state);
  save_safetensors(folder + "/c", state);
  save_mz(folder + "/d", graph);
  std::filesystem::create_directory(folder + "/e");
  save_safetensors(folder + "/e/model.safetensors", state);
  test::write(folder + "/e/config.json", "{\"model_type\": \"mlp\"}");
  const std::pair<const char*, CheckpointType> kinds[] = {{"/a", CheckpointType::pl},
                                                          {"/b", CheckpointType::pt},
                                                          {"/c", CheckpointType::safetensors},
                                                          {"/d", CheckpointType::mz},
                                                          {"/e", CheckpointType::hf}};
  for (const auto& [name, type] : kinds) {
    const Checkpoint checkpoint = load_checkpoint(folder + name);
    EXPECT_EQ(checkpoint.type, type) << name;
    EXPECT_EQ(load_checkpoint(folder + name, type).tensors.size(), state.size()) << name;
    ASSERT_EQ(checkpoint.tensors.size(), state.size()) << name;
    Graph other = make_model("jsc-tiny", {.seed = 5});
    load_into(other, checkpoint, name);
    const TensorTable loaded = state_dict(other);
    for (size_t i = 0; i < state.size(); ++i)
      EXPECT_TRUE(loaded[i].second.same_bits(state[i].second)) << name << " " << state[i].first;
  }
  EXPECT_NE(fault([&] {
              load_checkpoint(folder + "/a", CheckpointType::mz);
            }).find("is a PyTorch file, not of type mz"),
            std::string::npos);
  EXPECT_NE(fault([&] {
              load_checkpoint(folder + "/b", CheckpointType::pl);
            }).find("is a plain state dict, not a Lightning checkpoint"),
            std::string::npos);
  test::write(folder + "/f", "just text, and no checkpoint");
  EXPECT_NE(fault([&] { load_checkpoint(folder + "/f"); }).find("is no checkpoint we know"),
            std::string::npos);
  test::write(folder + "/g", std::string("\x80\x02}."));
  EXPECT_NE(fault([&] { load_checkpoint(folder + "/g"); }).find("plain Python pickle"),
            std::string::npos);
  test::write(folder + "/h", "");
  EXPECT_NE(fault([&] { load_checkpoint(folder + "/h"); }).find("is empty"), std::string::npos);
  EXPECT_NE(fault([&] { load_checkpoint(folder + "/none"); }).find("cannot open"),
            std::string::npos);
  EXPECT_NE(fault([&] { load_checkpoint(folder); }).find("no config.json"), std::string::npos);
}

TEST(Checkpoint, HuggingFaceShardsAreReadTogether) {
  const std::string folder = test::temporary_folder();
  test::write(folder + "/config.json", "{}");
  save_safetensors(folder + "/m-1.safetensors", {{"a", Tensor::scalar(1)}});
  save_safetensors(folder + "/m-2.safetensors", {{"b", Tensor::scalar(2)}});
  test::write(folder + "/model.safetensors.index.json",
              R"({"weight_map": {"a": "m-1.safetensors", "b": "m-2.safetensors"}})");
  EXPECT_EQ(load_checkpoint(folder).tensors.size(), 2u);
  test::write(folder + "/model.safetensors.index.json", R"({"weight_map": {"a": "../x"}})");
  EXPECT_NE(fault([&] { load_checkpoint(folder); }).find("leaves the folder"), std::string::npos);
}

// Thousands of small layers take more memory to describe than they have bytes.
TEST(Checkpoint, ManySmallTensorsAreReadAgain) {
  const std::string path = test::temporary_folder() + "/many.pt";
  TensorTable tensors;
  for (int i = 0; i < 60000; ++i)
    tensors.emplace_back(fmt::format("seq_blocks.{}.weight", i), Tensor({2}));
  save_state_dict(path, tensors);
  EXPECT_EQ(load_checkpoint(path).tensors.size(), tensors.size());
}

}  // namespace
}  // namespace mase::checkpoint_test
