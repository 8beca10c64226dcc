// SPDX-License-Identifier: Apache-2.0
// Computing only what changed gives what a program of the whole network gives, bit for bit, in the
// order of an exhaustive search and in any other.
#include "mase/search/measure/prefix_runner.h"

#include <algorithm>
#include <cmath>

#include "mase/base/random.h"
#include "mase/base/text.h"
#include "mase/models/model.h"
#include "mase/passes/quantize_plan.h"
#include "mase/search/measure/ptq_evaluator.h"
#include "support/support.h"

namespace mase::search::prefix_runner_test {
namespace {

Dataset rows_like_jets(int64_t count) {
  Dataset dataset;
  dataset.name = "rows";
  Random random(5, "rows");
  std::vector<float> x;
  std::vector<int32_t> labels;
  for (int64_t i = 0; i < count; ++i) {
    const auto label = static_cast<int32_t>(random.below(5));
    for (int32_t f = 0; f < 16; ++f)
      x.push_back(static_cast<float>(random.normal()) + (f % 5 == label ? 1.5f : 0.0f));
    labels.push_back(label);
  }
  dataset.validation.x = Tensor::of({count, 16}, x);
  dataset.validation.labels = Tensor::of<int32_t>({count}, std::span<const int32_t>(labels));
  for (int c = 0; c < 5; ++c) dataset.class_names.push_back(std::to_string(c));
  return dataset;
}

// As images are kept: bytes and what they stand for.
Dataset as_bytes(Dataset dataset) {
  Tensor bytes(dataset.validation.x.shape(), DType::u8);
  for (int64_t i = 0; i < bytes.numel(); ++i)
    bytes.mutable_data<uint8_t>()[i] = static_cast<uint8_t>(
        std::clamp(std::lround(dataset.validation.x.item(i) * 16 + 128), 0L, 255L));
  dataset.validation.x = bytes;
  dataset.validation.bytes = std::make_shared<const ByteScale>(
      ByteScale{std::vector<float>(16, 128.0f), std::vector<float>(16, 16.0f)});
  return dataset;
}

const char* seed_text = R"(
[default.config]
name = ["NA"]
[linear.config]
name = ["integer"]
data_in_width = [4, 8]
data_in_frac_width = ["NA"]
weight_width = [1, 8]
weight_frac_width = ["NA"]
bias_width = [8]
bias_frac_width = ["NA"]
)";

TEST(PrefixRunner, GivesWhatTheWholeNetworkGives) {
  for (const char* model : {"jsc-tiny", "jsc-toy"}) {
    const Dataset plain = rows_like_jets(700);
    const Dataset dataset = model == std::string("jsc-tiny") ? as_bytes(plain) : plain;
    const Graph graph = make_model(model);
    Problems problems;
    const Value seed = parse_toml(seed_text, "seed");
    const QuantizeSpace space({graph, seed, "type", "seed"}, problems);
    problems.throw_if_any();
    const FigureSet figures = FigureSet::plain(true);
    const PtqEvaluator evaluator(graph, space, {&dataset, &dataset.validation, 600}, 256, figures);
    PtqEvaluator::OwnSession session(evaluator);
    PrefixRunner& runner = session.runner;
    EXPECT_GE(runner.pieces(), 2u);
    const auto size = static_cast<uint64_t>(space.space().size());
    Random random(3, "order");
    for (const bool in_order : {true, false})
      for (uint64_t i = 0; i < std::min<uint64_t>(size, 64); ++i) {
        const Point point =
            space.space().nth(static_cast<double>(in_order ? i : random.below(size)));
        const Score ours = runner.run(point);
        Candidate candidate{graph, {}};
        space.apply(point, {}, candidate);
        const Score whole = score_network(candidate.graph, dataset, dataset.validation, 600, 256);
        EXPECT_EQ(session.measure(std::span(&point, 1), {})[0].figures.hardware,
                  figures.hardware(candidate.graph));
        EXPECT_EQ(ours.rows, 600);
        EXPECT_EQ(ours.correct, whole.correct) << model << " " << i;
        EXPECT_EQ(ours.loss_sum, whole.loss_sum) << model << " " << i;
      }
  }
}

// Many at once, in the order of an exhaustive search and mixed: the same bits as one by one, for
// formats that round values on their own and for one that does not.
TEST(PrefixRunner, ManyAtOnceAreWhatEachIs) {
  const Dataset dataset = rows_like_jets(700);
  for (const char* model : {"jsc-tiny", "jsc-toy", "jsc-three-linear-layers", "jsc-10x"})
    for (const char* name : {"[\"integer\"]", "[\"integer\", \"NA\"]", "[\"block_fp\"]"}) {
      const Graph graph = make_model(model);
      Problems problems;
      std::string text =
          replace_all(seed_text, "name = [\"integer\"]", "name = " + std::string(name));
      if (std::string(name).find("block") != std::string::npos)
        text =
            "[default.config]\nname = [\"NA\"]\n[linear.config]\nname = [\"block_fp\"]\n"
            "data_in_width = [6, 8]\nweight_width = [4, 8]\n";
      const Value seed = parse_toml(text, "seed");
      const QuantizeSpace space({graph, seed, "type", "seed"}, problems);
      problems.throw_if_any();
      PrefixRunner runner(graph, space, dataset, dataset.validation, 650, 256);
      const double size = std::min(space.space().size(), 300.0);
      std::vector<Point> points;
      for (double i = 0; i < size; ++i) points.push_back(space.space().nth(i));
      for (double i = 0; i < 40; ++i)
        points.push_back(space.space().nth(std::fmod(i * 29, space.space().size())));
      const std::vector<Score> scores = runner.run(points);
      ASSERT_EQ(scores.size(), points.size());
      for (size_t i = 0; i < points.size(); i += i < 20 ? 1 : 7) {
        Candidate candidate{graph, {}};
        space.apply(points[i], {}, candidate);
        const Score whole = score_network(candidate.graph, dataset, dataset.validation, 650, 256);
        EXPECT_EQ(scores[i].rows, 650);
        EXPECT_EQ(scores[i].correct, whole.correct) << model << " " << name << " " << i;
        EXPECT_EQ(scores[i].loss_sum, whole.loss_sum) << model << " " << name << " " << i;
      }
    }
}

TEST(PrefixRunner, ComputesOnlyWhatChanged) {
  const Dataset dataset = rows_like_jets(100);
  const Graph graph = make_model("jsc-toy");
  Problems problems;
  const Value seed = parse_toml(seed_text, "seed");
  const QuantizeSpace space({graph, seed, "type", "seed"}, problems);
  problems.throw_if_any();
  PrefixRunner runner(graph, space, dataset, dataset.validation, 100, 100);
  const double size = space.space().size();
  for (double i = 0; i < size; ++i) runner.run(space.space().nth(i));
  // Four configurations a layer: the last piece runs each time, the one before a fourth of it, ...
  double wanted = 1, last = size;
  for (size_t piece = runner.pieces(); piece > 1; --piece, last /= 4) wanted += last;
  EXPECT_EQ(static_cast<double>(runner.computed()), wanted);
}

// Formats that leave no weight another number are one network; those that do are not.
TEST(PrefixRunner, EqualWeightsAreRunOnce) {
  const Dataset dataset = rows_like_jets(300);
  for (const float stretch : {1.0f, 30.0f}) {
    Graph graph = make_model("jsc-10x");
    for (auto& [name, module] : graph.modules())
      if (module.op == "linear")
        for (auto& [parameter, tensor] : module.parameters)
          for (int64_t i = 0; i < tensor.numel(); ++i) tensor.mutable_data<float>()[i] *= stretch;
    Problems problems;
    const Value seed = parse_toml(replace_all(seed_text, "[1, 8]", "[4, 5, 6, 7]"), "seed");
    const QuantizeSpace space({graph, seed, "type", "seed"}, problems);
    problems.throw_if_any();
    PrefixRunner runner(graph, space, dataset, dataset.validation, 300, 256);
    std::vector<Point> points;
    for (double i = 0; i < space.space().size(); ++i) points.push_back(space.space().nth(i));
    const std::vector<Score> scores = runner.run(points);
    // Widths 4 and 5 have the same point, and so have 6 and 7: half of each layer's are equal.
    const double share = stretch > 1 ? 1 : 1.0 / 4;
    EXPECT_LE(static_cast<double>(runner.computed()), 1.3 * share * space.space().size());
    EXPECT_GE(static_cast<double>(runner.computed()), share * share / 2 * space.space().size());
    for (size_t i = 0; i < points.size(); i += 17) {
      Candidate candidate{graph, {}};
      space.apply(points[i], {}, candidate);
      const Score whole = score_network(candidate.graph, dataset, dataset.validation, 300, 256);
      EXPECT_EQ(scores[i].correct, whole.correct) << i;
      EXPECT_EQ(scores[i].loss_sum, whole.loss_sum) << i;
    }
  }
}

}  // namespace
}  // namespace mase::search::prefix_runner_test
