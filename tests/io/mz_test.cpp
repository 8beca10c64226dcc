// SPDX-License-Identifier: Apache-2.0
// .mz: what is saved comes back, number for number and line for line; what is damaged does not.
#include "mase/io/networks/checkpoint.h"
#include "mase/io/zip/zip_reader.h"
#include "mase/io/zip/zip_writer.h"
#include "mase/ir/evaluate.h"
#include "mase/ir/op.h"
#include "mase/models/model.h"
#include "support/support.h"

namespace mase::mz_test {
namespace {

// jsc-tiny with a quantised layer, a mask, a frozen layer and metadata of every kind.
Graph transformed() {
  Graph graph = make_model("jsc-tiny", {.seed = 3});
  Module& linear = graph.modules().at("seq_blocks.2");
  Problems problems;
  const OpRecord& op = find_op("linear");
  const Value config =
      Dict{{"name", "integer"},   {"data_in_width", 8},     {"data_in_frac_width", 4},
           {"weight_width", 8},   {"weight_frac_width", 4}, {"bias_width", 8},
           {"bias_frac_width", 4}};
  linear.quantization = parse_quantization(config, operand_rules(op), "", problems);
  problems.throw_if_any();
  Tensor mask(linear.find("weight")->shape());
  for (int64_t i = 0; i < mask.numel(); ++i) mask.mutable_data<float>()[i] = i % 3 != 0;
  linear.masks.emplace_back("weight", mask);
  graph.modules().at("seq_blocks.0").frozen = true;
  graph.meta.set("note", "from a test");
  Node& node = graph.node(graph.order()[1]);
  node.meta.set("common", Dict{{"args", Dict{{"data_in_0", Dict{{"type", Symbol{"float"}},
                                                                {"precision", List{32}},
                                                                {"shape", List{8, 16}}}}}},
                               {"worst", INFINITY}});
  return graph;
}

Array batch() {
  Array x({4, 16});
  for (size_t i = 0; i < x.data.size(); ++i) x.data[i] = static_cast<double>(i % 7) - 2.5;
  return x;
}

std::string repacked(const std::string& path,
                     const std::function<void(std::string& name, std::string& content)>& change) {
  const std::string bytes = test::read(path);
  MemoryBudget budget({}, bytes.size());
  const ZipReader zip(std::as_bytes(std::span(bytes)), path, budget);
  std::string out;
  ZipWriter writer(
      [&](const void* data, size_t n) { out.append(static_cast<const char*>(data), n); });
  for (const ZipReader::Entry& entry : zip.entries()) {
    const auto stored = zip.stored(entry);
    std::string name(entry.name),
        content(reinterpret_cast<const char*>(stored.data()), stored.size());
    change(name, content);
    if (!name.empty()) writer.add(name, content);
  }
  writer.finish();
  return out;
}

std::string fault(const std::string& content) {
  const std::string path = test::temporary_folder() + "/x.mz";
  test::write(path, content);
  try {
    load_checkpoint(path);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Mz, GivesBackTheSameGraph) {
  if (!Registry<FormatRecord>::instance().find("integer")) GTEST_SKIP() << "no integer format";
  const Graph graph = transformed();
  const std::string path = test::temporary_folder() + "/a.mz";
  const Value extra = Dict{{"passes", List{"quantize"}}, {"seed", 3}};
  save_mz(path, graph, extra);
  const Checkpoint checkpoint = load_checkpoint(path);
  EXPECT_EQ(checkpoint.type, CheckpointType::mz);
  EXPECT_EQ(checkpoint.contents, extra);
  ASSERT_TRUE(checkpoint.graph);
  const Graph& back = *checkpoint.graph;
  EXPECT_EQ(back.text(), graph.text());
  EXPECT_EQ(graph_to_value(back), graph_to_value(graph));
  for (const auto& [name, module] : graph.modules()) {
    const Module& other = back.modules().at(name);
    EXPECT_EQ(other.frozen, module.frozen);
    ASSERT_EQ(other.masks.size(), module.masks.size());
    for (size_t i = 0; i < module.masks.size(); ++i)
      EXPECT_TRUE(other.masks[i].second.same_bits(module.masks[i].second));
    EXPECT_EQ(other.quantization.config, module.quantization.config);
    EXPECT_EQ(other.quantization.active(), module.quantization.active());
  }
  const TensorTable before = state_dict(graph), after = state_dict(back);
  ASSERT_EQ(before.size(), after.size());
  for (size_t i = 0; i < before.size(); ++i)
    EXPECT_TRUE(before[i].second.same_bits(after[i].second)) << before[i].first;
  EXPECT_EQ(evaluate(back, {batch()})[0].data, evaluate(graph, {batch()})[0].data);
  save_mz(path + "2", back, extra);
  EXPECT_EQ(test::read(path), test::read(path + "2")) << "saved again, the file is the same";
}

TEST(Mz, FloatAndQuantisedNetworksExchangeWeights) {
  if (!Registry<FormatRecord>::instance().find("integer")) GTEST_SKIP() << "no integer format";
  const std::string folder = test::temporary_folder();
  const Graph quantised = transformed();
  Graph plain = make_model("jsc-tiny", {.seed = 9});
  save_lightning(folder + "/float.ckpt", state_dict(plain));
  Graph target = quantised;
  load_into(target, load_checkpoint(folder + "/float.ckpt"), "float.ckpt");
  EXPECT_TRUE(target.modules().at("seq_blocks.2").quantization.active());
  EXPECT_TRUE(target.modules()
                  .at("seq_blocks.2")
                  .find("weight")
                  ->same_bits(*plain.modules().at("seq_blocks.2").find("weight")));
  save_mz(folder + "/quantised.mz", quantised);
  load_into(plain, load_checkpoint(folder + "/quantised.mz"), "quantised.mz");
  EXPECT_FALSE(plain.modules().at("seq_blocks.2").quantization.active());
  EXPECT_TRUE(plain.modules()
                  .at("seq_blocks.2")
                  .find("weight")
                  ->same_bits(*quantised.modules().at("seq_blocks.2").find("weight")));
}

TEST(Mz, DamageIsAnError) {
  const std::string path = test::temporary_folder() + "/a.mz";
  save_mz(path, make_model("jsc-tiny"));
  EXPECT_EQ(fault(test::read(path)), "no error");
  const auto changed = [&](const char* entry, const std::string& from, const std::string& to) {
    return fault(repacked(path, [&](std::string& name, std::string& content) {
      if (name != entry) return;
      ASSERT_NE(content.find(from), std::string::npos);
      content.replace(content.find(from), from.size(), to);
    }));
  };
  const auto without = [&](const char* entry) {
    return fault(repacked(path, [&](std::string& name, std::string&) {
      if (name == entry) name.clear();
    }));
  };
  EXPECT_NE(changed("mase.json", "\"version\": 2", "\"version\": 9").find("has version 9"),
            std::string::npos);
  EXPECT_NE(changed("graph.json", "16", "17"), "no error");
  EXPECT_NE(changed("graph.json", "\"op\": \"linear\"", "\"op\": \"linaer\""), "no error");
  EXPECT_NE(changed("graph.json", "{", "[[[["), "no error");
  EXPECT_NE(changed("weights.safetensors", "parameter:", "parametre:"), "no error");
  EXPECT_NE(without("weights.safetensors").find("holds no 'weights.safetensors'"),
            std::string::npos);
  EXPECT_NE(without("graph.json").find("holds no 'graph.json'"), std::string::npos);
  const std::string good = test::read(path);
  for (size_t size = 0; size < good.size(); size += 7)
    EXPECT_NE(fault(good.substr(0, size)), "no error") << size;
}

TEST(Mz, AFlippedBitInAWeightIsAnError) {
  const std::string path = test::temporary_folder() + "/a.mz";
  save_mz(path, make_model("jsc-tiny", {.seed = 3}));
  const std::string whole = test::read(path);
  MemoryBudget budget({}, whole.size());
  const ZipReader zip(std::as_bytes(std::span(whole)), path, budget);
  const ZipReader::Entry* weights = zip.find("weights.safetensors");
  ASSERT_TRUE(weights);
  const auto begin = static_cast<size_t>(weights->data_offset);
  for (size_t at = begin; at < begin + weights->size; at += 97) {
    std::string bad = whole;
    bad[at] = static_cast<char>(bad[at] ^ 1);
    test::write(path, bad);
    try {
      load_checkpoint(path);
      ADD_FAILURE() << at;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("its checksum is wrong"), std::string::npos);
    }
  }
}

TEST(Mz, ClaimsInAGraphCostNothing) {
  const std::string path = test::temporary_folder() + "/a.mz";
  save_mz(path, make_model("jsc-tiny"));
  // A graph that claims a tensor far larger than the file, and one that is all brackets.
  EXPECT_NE(fault(repacked(path,
                           [](std::string& name, std::string& content) {
                             if (name != "graph.json") return;
                             const size_t at =
                                 content.find("\"shape\"", content.find("\"parameters\""));
                             content.replace(content.find('[', at), 1, "[4000000000, ");
                           })),
            "no error");
  EXPECT_NE(fault(repacked(path,
                           [](std::string& name, std::string& content) {
                             if (name == "graph.json")
                               content = "[" + std::string(4 << 20, ',') + "]";
                           }))
                .find("more memory than the limit"),
            std::string::npos);
}

// Formats that need no key round what they rounded before, whether all operands or some have keys.
TEST(Mz, EveryFormatOfNoKeyComesBack) {
  const OpRecord& op = find_op("linear");
  const std::string path = test::temporary_folder() + "/x.mz";
  int tried = 0;
  for (const FormatRecord* format : Registry<FormatRecord>::instance().all()) {
    Dict config{{"name", format->name}};
    for (const bool some : {false, true}) {
      if (some && format->schema.fields.empty()) continue;
      const Field* field = some ? &format->schema.fields[0] : nullptr;
      if (field && field->default_value.is_null()) continue;
      if (field) config.set("weight_" + field->name, field->default_value);
      Graph graph = make_model("jsc-tiny", {.seed = 3});
      Problems problems;
      Module& linear = graph.modules().at("seq_blocks.2");
      linear.quantization = parse_quantization(Value(config), operand_rules(op), "", problems);
      if (!problems.empty()) continue;  // it needs keys
      ++tried;
      save_mz(path, graph);
      const Graph back = *load_checkpoint(path).graph;
      const Quantization& now = back.modules().at("seq_blocks.2").quantization;
      ASSERT_EQ(now.operands.size(), linear.quantization.operands.size()) << format->name;
      for (const auto& [operand, quantizer] : linear.quantization.operands)
        EXPECT_TRUE(now.find(operand) && now.find(operand)->config == quantizer->config)
            << format->name << " " << operand;
    }
  }
  EXPECT_GT(tried, 8);
}

}  // namespace
}  // namespace mase::mz_test
