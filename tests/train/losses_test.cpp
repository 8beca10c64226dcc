// SPDX-License-Identifier: Apache-2.0
// Every registered loss: its value against PyTorch's formula written out in double precision where
// we know it, its gradient against finite differences, shards of a batch against the whole one.
#include "mase/train/loss.h"

#include <cmath>
#include <functional>
#include <map>

#include "mase/models/model.h"
#include "mase/train/evaluation.h"
#include "support/random_tensor.h"
#include "support/support.h"

namespace mase::losses_test {
namespace {

using test::random_tensor;

constexpr int64_t rows = 7, features = 4, outputs = 3;

// One linear layer: the derivatives by its weights are sums of those by the outputs.
Graph network(int64_t width = outputs) {
  Graph graph;
  graph.name = "one";
  Module layer =
      make_module("linear", Dict{{"in_features", features}, {"out_features", width}}, 3, "layer");
  graph.add_output({graph.add_module("layer", layer, {graph.add_placeholder("x", {features})})});
  return graph;
}

struct Data {
  Tensor x = random_tensor({rows, features}, 1.5, 1);
  Tensor numbers = random_tensor({rows, outputs}, 1.5, 2);
  Tensor labels = Tensor::of<int32_t>({rows}, std::vector<int32_t>{0, 2, 1, 1, 0, 2, 2});
  Batch batch(bool classes) const {
    Batch batch;
    batch.inputs = {x};
    batch.target = classes ? labels : numbers;
    batch.size = rows;
    return batch;
  }
};

Program compile(const LossFunction& loss, bool training = true, int64_t batch_size = rows) {
  CompileOptions options;
  options.training = training;
  options.batch_size = batch_size;
  options.loss = loss;
  return Program::compile(network(), options);
}

// Options that differ from the defaults, where a loss has them.
Dict unusual(const LossRecord& record) {
  Dict options;
  for (const Field& field : record.options.fields) {
    if (field.type == FieldType::number)
      options.set(field.name, field.default_value.as_double() * 0.4 + 0.2);
    if (field.name == "weight") options.set(field.name, List{0.5, 2.0, 1.25});
  }
  return options;
}

bool takes(const LossRecord& record, bool classes) {
  for (const TargetKind kind : record.targets)
    if ((kind == TargetKind::numbers) != classes) return true;
  return false;
}

TEST(Losses, GradientsAreFiniteDifferences) {
  const Data data;
  for (const LossRecord* record : Registry<LossRecord>::instance().all())
    for (const bool classes : {true, false}) {
      if (!takes(*record, classes)) continue;
      for (const Dict& options : {Dict{}, unusual(*record)}) {
        Program program = compile(make_loss(record->name, options, classes));
        const Batch batch = data.batch(classes);
        program.forward_backward(batch);
        const std::vector<float> gradient(program.gradient_memory().begin(),
                                          program.gradient_memory().end());
        for (ParameterView& view : program.parameters())
          for (size_t i = 0; i < view.value.size(); ++i) {
            const float old = view.value[i], step = 2e-3f;
            double losses[2];
            for (const int side : {0, 1}) {
              view.value[i] = side ? old + step : old - step;
              program.parameters_changed();
              losses[side] = program.forward(batch).loss;
            }
            view.value[i] = old;
            const size_t at =
                static_cast<size_t>(&view.value[i] - program.parameter_memory().data());
            EXPECT_NEAR(gradient[at], (losses[1] - losses[0]) / (2.0 * step), 2e-3)
                << record->name << (classes ? " of classes " : " of numbers ") << view.name << i
                << " " << to_json(Value(options));
          }
      }
    }
}

// The mean over values of f(output, target).
using Formula = std::function<double(double x, double t)>;

TEST(Losses, ValuesArePyTorchsFormulas) {
  const Data data;
  const double delta = 0.6, positive = 0.7;
  const std::map<std::string, std::pair<Dict, Formula>> formulas = {
      {"mse", {{}, [](double x, double t) { return (x - t) * (x - t); }}},
      {"l1", {{}, [](double x, double t) { return std::fabs(x - t); }}},
      {"huber",
       {{{"delta", delta}},
        [&](double x, double t) {
          const double d = std::fabs(x - t);
          return d < delta ? d * d / 2 : delta * (d - delta / 2);
        }}},
      {"smooth_l1",
       {{{"beta", delta}},
        [&](double x, double t) {
          const double d = std::fabs(x - t);
          return d < delta ? d * d / 2 / delta : d - delta / 2;
        }}},
      {"bce_with_logits",
       {{{"pos_weight", positive}},
        [&](double x, double t) {
          const double p = 1 / (1 + std::exp(-x));
          return -(positive * t * std::log(p) + (1 - t) * std::log(1 - p));
        }}},
      {"poisson_nll", {{}, [](double x, double t) { return std::exp(x) - t * x; }}},
      {"log_cosh", {{}, [](double x, double t) { return std::log(std::cosh(x - t)); }}},
  };
  for (const auto& [name, formula] : formulas)
    for (const bool classes : {true, false}) {
      Program program = compile(make_loss(name, formula.first, classes), false);
      const double loss = program.forward(data.batch(classes)).loss;
      std::vector<float> out(rows * outputs);
      program.read_output(0, out.data());
      double wanted = 0;
      for (int64_t i = 0; i < rows * outputs; ++i) {
        const double t =
            classes ? data.labels.item(i / outputs) == i % outputs : data.numbers.item(i);
        wanted += formula.second(out[static_cast<size_t>(i)], t) / (rows * outputs);
      }
      EXPECT_NEAR(loss, wanted, 1e-6 * std::max(1.0, std::fabs(wanted))) << name << classes;
    }
}

TEST(Losses, CrossEntropyWeighsAndSmoothsAsPyTorchDoes) {
  const Data data;
  for (const double smoothing : {0.0, 0.15})
    for (const std::vector<double>& weights :
         {std::vector<double>{1, 1, 1}, std::vector<double>{0.5, 2, 1.25}}) {
      Dict options{{"label_smoothing", smoothing}};
      if (weights[0] != 1) options.set("weight", List(weights.begin(), weights.end()));
      Program program = compile(make_loss("cross_entropy", options), false);
      const StepResult result = program.forward(data.batch(true));
      std::vector<float> out(rows * outputs);
      program.read_output(0, out.data());
      double sum = 0, total = 0;
      int64_t hits = 0;
      for (size_t b = 0; b < rows; ++b) {
        const float* x = out.data() + b * outputs;
        const auto label = static_cast<size_t>(data.labels.item(static_cast<int64_t>(b)));
        double exponentials = 0;
        size_t best = 0;
        for (size_t c = 0; c < outputs; ++c) {
          exponentials += std::exp(x[c]);
          if (x[c] > x[best]) best = c;
        }
        hits += best == label;
        total += weights[label];
        for (size_t c = 0; c < outputs; ++c)
          sum -= weights[c] * ((c == label) * (1 - smoothing) + smoothing / outputs) *
                 (x[c] - std::log(exponentials));
      }
      EXPECT_NEAR(result.loss, sum / total, 1e-6) << to_json(Value(options));
      EXPECT_EQ(result.correct, hits) << to_json(Value(options));
    }
}

// A loss that is made of parts takes the general way, not the fused one.
TEST(Losses, PartsMayBeAdded) {
  const Data data;
  const auto gradient = [&](double share) {
    LossFunction loss = make_loss("cross_entropy");
    if (share != 1)
      loss.lower = [share](Lowering& to, Slot output, Slot target) {
        const Slot a = to.cross_entropy(output, target, {}),
                   b = to.cross_entropy(output, target, {});
        return to.map(share * Expr::operand(0) + (1 - share) * Expr::operand(1), {a, b});
      };
    Program program = compile(loss);
    const StepResult result = program.forward_backward(data.batch(true));
    std::vector<double> all(program.gradient_memory().begin(), program.gradient_memory().end());
    all.push_back(result.loss);
    all.push_back(static_cast<double>(result.correct));
    return all;
  };
  const std::vector<double> whole = gradient(1), parts = gradient(0.25);
  for (size_t i = 0; i < whole.size(); ++i) EXPECT_NEAR(whole[i], parts[i], 1e-6) << i;
}

TEST(Losses, ShardsOfUnequalSizeAddUpToTheWhole) {
  const Data data;
  for (const LossRecord* record : Registry<LossRecord>::instance().all())
    for (const bool classes : {true, false}) {
      if (!takes(*record, classes)) continue;
      const LossFunction loss = make_loss(record->name, unusual(*record), classes);
      Program whole = compile(loss);
      const double wanted = whole.forward_backward(data.batch(classes)).loss;
      // Two processes of 5 and 2 rows, one after the other: the first run finds out what each adds
      // to the sums, the second gives them the sums of both.
      const int64_t from[] = {0, 5}, size[] = {5, 2};
      std::vector<double> parts[2];
      double got = 0;
      std::vector<float> gradient(whole.gradient_memory().size());
      for (const bool summing : {false, true})
        for (const size_t rank : {0u, 1u}) {
          size_t call = 0;
          CompileOptions options = whole.options();
          options.all_reduce = [&](std::span<double> sums) {
            if (!summing) {
              parts[rank].insert(parts[rank].end(), sums.begin(), sums.end());
              return;
            }
            for (double& sum : sums) {
              sum = parts[0].at(call) + parts[1].at(call);
              ++call;
            }
          };
          Program shard = Program::compile(network(), options);
          Batch batch = data.batch(classes);
          batch.first_row = batch.first_sample = from[rank];
          batch.size = size[rank];
          batch.whole_size = rows;
          const double part = shard.forward_backward(batch).loss;
          if (!summing) continue;
          got += part;
          for (size_t i = 0; i < gradient.size(); ++i) gradient[i] += shard.gradient_memory()[i];
        }
      EXPECT_NEAR(got, wanted, 1e-6 * std::max(1.0, std::fabs(wanted))) << record->name;
      for (size_t i = 0; i < gradient.size(); ++i)
        EXPECT_NEAR(gradient[i], whole.gradient_memory()[i], 1e-5) << record->name << " " << i;
    }
}

TEST(Losses, WhatTheyCannotTakeIsAnError) {
  EXPECT_THROW(make_loss("cross_entropy", Dict{}, false), Error);
  EXPECT_THROW(make_loss("crossentropy"), Error);
  EXPECT_THROW(make_loss("mse", Dict{{"reduction", "sum"}}), Error);
  EXPECT_THROW(make_loss("mse", Dict{}, true, {1, 2, 1}), Error);
  EXPECT_THROW(make_loss("cross_entropy", Dict{{"label_smoothing", 1.5}}), Error);
  EXPECT_THROW(make_loss("cross_entropy", Dict{{"weight", List{0, 0, 0}}}), Error);
  EXPECT_THROW(compile(make_loss("cross_entropy", Dict{{"weight", List{1, 2}}})), Error);
}

TEST(Losses, ABatchIsCheckedBeforeItRuns) {
  const Data data;
  Program program = compile(make_loss("cross_entropy"));
  const auto refused = [&](const std::function<void(Batch&)>& spoil, const std::string& word) {
    Batch batch = data.batch(true);
    spoil(batch);
    try {
      program.forward_backward(batch);
      ADD_FAILURE() << word;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(word), std::string::npos) << error.what();
    }
  };
  const std::vector<uint32_t> far = {0, 1, 7}, near = {0, 1};
  refused([](Batch& b) { b.target = {}; }, "targets");
  refused([&](Batch& b) { b.target = data.numbers; }, "int32");
  refused([](Batch& b) { b.size = 8; }, "8 samples");
  refused([](Batch& b) { b.first_row = 1; }, "row 7");
  refused([](Batch& b) { b.first_row = -1; }, "row -1");
  refused(
      [&](Batch& b) {
        b.rows = far;
        b.size = 3;
      },
      "row 7");
  refused(
      [&](Batch& b) {
        b.rows = near;
        b.size = 3;
      },
      "2 row numbers");
  refused([&](Batch& b) { b.inputs = {data.numbers}; }, "4 float32");
  refused([](Batch& b) { b.inputs.clear(); }, "1 inputs");
  refused([](Batch& b) { b.inputs[0].name = "y"; }, "'x'");
  const std::vector<int32_t> labels = {0, 1, 2, 3, 0, 0, 0};
  refused([&](Batch& b) { b.target = RowTensor(labels); }, "label 3");
  EXPECT_NO_THROW(program.forward_backward(data.batch(true)));
}

TEST(Losses, SharingProgramsSeeOneAnothersWeights) {
  const Data data;
  Program training = compile(make_loss("cross_entropy"));
  CompileOptions options = training.options();
  options.training = false;
  Program evaluation = training.sharing(options);
  const Batch batch = data.batch(true);
  const double before = evaluation.forward(batch).loss;
  EXPECT_EQ(before, training.forward(batch).loss);
  for (float& value : training.parameter_memory()) value *= 2;
  training.parameters_changed();
  EXPECT_NE(before, evaluation.forward(batch).loss);
  EXPECT_EQ(training.forward(batch).loss, evaluation.forward(batch).loss);
}

// However a split is cut into batches, its loss is PyTorch's of all rows: those of a batch whose
// classes all weigh nothing have a share in it where labels are smoothed.
TEST(Losses, WithClassWeightsAreThoseOfTheSplit) {
  const Data data;
  Split split;
  split.x = data.x;
  split.labels = data.labels;
  for (const double smoothing : {0.0, 0.1}) {
    const LossFunction loss = make_loss(
        "cross_entropy", Dict{{"weight", List{0.5, 0.0, 4.0}}, {"label_smoothing", smoothing}});
    Program whole = compile(loss, false);
    const double wanted = whole.forward(data.batch(true)).loss;
    for (const int64_t size : {1, 2, 3, 5}) {
      Program program = compile(loss, false, size);
      EXPECT_NEAR(score_rows(program, split, 0, rows).loss(), wanted, 1e-6) << size;
      Score score;
      predict_rows(program, split, &score);
      EXPECT_NEAR(score.loss(), wanted, 1e-6) << size;
      MetricStream stream;
      stream.choose("loss", true);
      const int64_t batches = (rows + size - 1) / size;
      stream.start(batches, outputs);
      std::vector<float> room;
      stream_batches(program, split, 0, batches, stream, room);
      EXPECT_NEAR(stream.value(0), wanted, 1e-6) << size;
    }
  }
}

}  // namespace
}  // namespace mase::losses_test
