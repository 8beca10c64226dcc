// SPDX-License-Identifier: Apache-2.0
// ch train, ch test and ch predict from the outside: options and their precedence, the run folder,
// the printed tables, and every way to fail.
#include <filesystem>

#include "mase/base/random.h"
#include "mase/base/text.h"
#include "mase/base/value.h"
#include "mase/io/networks/checkpoint.h"
#include "support/support.h"

namespace mase::train_test {
namespace {

namespace fs = std::filesystem;
using test::ch;
using test::RunResult;

// A small table that takes milliseconds to train on.
const std::string& folder() {
  static const std::string path = [] {
    const std::string fresh = test::temporary_folder();
    Random random(1, "train_test");
    std::string csv = "a,b,c,kind\n";
    const char* kinds[] = {"red", "green", "blue"};
    for (int row = 0; row < 400; ++row) {
      const uint64_t kind = random.below(3);
      for (uint64_t f = 0; f < 3; ++f)
        csv += fmt::format("{:.4f},", 10 * random.normal() * 0.4 + (f == kind ? 20 : 0));
      csv += fmt::format("{}\n", kinds[kind]);
    }
    test::write(fresh + "/table.csv", csv);
    return fresh;
  }();
  return path;
}

RunResult train(std::vector<std::string> words) {
  std::vector<std::string> all = {"train"};
  if (words.empty() || words[0] != "--resume")
    all.insert(all.end(), {"jsc-toy", "table.csv", "--target", "kind", "--max-epochs", "2",
                           "--batch-size", "16", "--learning-rate", "0.01"});
  all.insert(all.end(), words.begin(), words.end());
  return ch(all, folder(), {"MASE_DATA=" + folder() + "/data"});
}

Value run_record(const std::string& run) { return read_json(folder() + "/" + run + "/run.json"); }

// The cells of the option table's row of this name.
std::vector<std::string> option_row(const RunResult& result, const std::string& name) {
  for (const std::string& line : split(result.out, '\n')) {
    std::vector<std::string> cells;
    for (const std::string& cell : split(line, '|')) cells.push_back(strip(cell));
    if (cells.size() == 7 && cells[1] == name) return {cells.begin() + 2, cells.end() - 1};
  }
  return {};
}

TEST(Train, WritesTheRunFolder) {
  const RunResult result = train({"--project-dir", "whole", "--project", "run"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  for (const char* file :
       {"run.json", "software/metrics.csv", "software/metrics.jsonl", "software/config.toml",
        "software/training_ckpts/best.ckpt", "software/training_ckpts/last.ckpt"})
    EXPECT_TRUE(fs::exists(folder() + "/whole/run/" + file)) << file;
  EXPECT_TRUE(fs::exists(folder() + "/whole/run/software/tensorboard/lightning_logs/version_0"));
  const Value record = run_record("whole/run");
  EXPECT_EQ(record["status"].as_string(), "finished");
  EXPECT_EQ(record["kind"].as_string(), "train");
  EXPECT_EQ(record["dataset"]["classes"].as_list().size(), 3u);
  EXPECT_EQ(record["summary"].as_list().size(), 11u);
  EXPECT_TRUE(record["best"]["epoch"].is_int());
  EXPECT_TRUE(record["evaluation"]["confusion"].is_list());
  EXPECT_GT(record["speed"]["steps_per_second"].as_double(), 0);
  const std::string csv = test::read(folder() + "/whole/run/software/metrics.csv");
  EXPECT_EQ(csv.substr(0, csv.find('\n')),
            "epoch,step,train_acc_step,train_loss_step,train_acc_epoch,train_loss_epoch,"
            "val_acc_epoch,val_loss_epoch,learning_rate,seconds");
  for (const std::string& line :
       split(strip(test::read(folder() + "/whole/run/software/metrics.jsonl")), '\n'))
    EXPECT_NO_THROW(parse_json(line, "metrics.jsonl")) << line;
  // One line per epoch where there is no terminal, and no control characters.
  EXPECT_NE(result.out.find("Epoch 1: 100%|██████████| "), std::string::npos);
  EXPECT_EQ(result.out.find('\r'), std::string::npos);
  EXPECT_EQ(result.out.find('\x1b'), std::string::npos);
}

TEST(Train, NamesTheFolderAsMaseAndNeverOverwritesOne) {
  ASSERT_EQ(train({}).exit_code, 0);
  const auto count = [] {
    int64_t folders = 0;
    for (const auto& entry : fs::directory_iterator(folder() + "/mase_output")) {
      const std::string name = entry.path().filename().string();
      EXPECT_TRUE(starts_with(name, "jsc-toy_classification_table_")) << name;
      ++folders;
    }
    return folders;
  };
  const int64_t before = count();
  ASSERT_EQ(train({"--max-epochs", "1"}).exit_code, 0);
  EXPECT_EQ(count(), before + 1);
}

TEST(Train, TypedFlagsWinOverTheFileAndTheFileOverDefaults) {
  test::write(folder() + "/lab.toml",
              "model = \"jsc-toy\"\ndataset = \"table.csv\"\ntarget = \"kind\"\ntask = \"cls\"\n"
              "max_epochs = 3\nbatch_size = 64\nlearning_rate = 1e-2\naccelerator = \"gpu\"\n"
              "project = \"lab\"\nseed = 42\nlog_every_n_steps = 5\n");
  const RunResult result = ch({"train", "--config", "lab.toml", "--batch-size", "128",
                               "--max-epochs", "1", "--show-options"},
                              folder());
  ASSERT_EQ(result.exit_code, 0) << result.err;
  using Row = std::vector<std::string>;
  EXPECT_EQ(option_row(result, "Name"),
            (Row{"Default", "Config. File", "Manual Override", "Effective"}));
  // Typing the default still wins.
  EXPECT_EQ(option_row(result, "batch_size"), (Row{"128", "64", "128", "128"}));
  EXPECT_EQ(option_row(result, "max_epochs"), (Row{"20", "3", "1", "1"}));
  EXPECT_EQ(option_row(result, "learning_rate"), (Row{"1e-05", "0.01", "", "0.01"}));
  EXPECT_EQ(option_row(result, "weight_decay"), (Row{"0.0", "", "", "0.0"}));
  // A seed of the file is honoured.
  EXPECT_EQ(run_record("mase_output/lab")["seed"].as_int(), 42);
  EXPECT_NE(result.err.find("accelerator = gpu"), std::string::npos) << result.err;
  EXPECT_EQ(result.err.find("Traceback"), std::string::npos);
  const RunResult quiet =
      ch({"train", "--config", "lab.toml", "--max-epochs", "1", "--no-warnings"}, folder());
  EXPECT_EQ(quiet.err, "");
}

TEST(Train, EveryOptionForOtherMachinesGetsOneLine) {
  const RunResult result = train({"--max-epochs",
                                  "1",
                                  "--project-dir",
                                  "other",
                                  "--gpu",
                                  "4",
                                  "--nodes",
                                  "2",
                                  "--accelerator",
                                  "gpu",
                                  "--strategy",
                                  "ddp",
                                  "--report-to",
                                  "wandb",
                                  "--trainer-precision",
                                  "16-mixed",
                                  "--auto-requeue",
                                  "--github-ci",
                                  "--pretrained",
                                  "--cpu",
                                  "3"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  for (const char* name : {"num_devices", "nodes", "accelerator", "strategy", "report_to",
                           "trainer_precision", "auto_requeue", "github_ci", "pretrained"}) {
    size_t lines = 0;
    for (const std::string& line : split(result.err, '\n'))
      lines += starts_with(line, fmt::format("WARNING  {}", name));
    EXPECT_EQ(lines, 1u) << name << "\n" << result.err;
  }
}

// Each option changes what is learned, or leaves it as it is where it must not matter.
TEST(Train, TakesEveryTrainingOption) {
  struct Group {
    std::vector<std::string> words;
    bool changes = true;
    std::string shows = {};  // what is printed then
  };
  const std::vector<Group> groups = {
      {{"--training-optimizer", "sgd", "--weight-decay", "1e-3", "--momentum", "0.8"}},
      {{"--training-optimizer", "sgd", "--no-nesterov"}},
      {{"--training-optimizer", "adamw", "--weight-decay", "0.01"}},
      {{"--optimizer-beta1", "0.5"}},
      {{"--schedule", "one-cycle"}},
      {{"--schedule", "step", "--step-size", "1", "--gamma", "0.5"}},
      {{"--schedule", "linear-warmup", "--warmup-steps", "5"}},
      {{"--schedule", "constant", "--warmup-steps", "5"}},
      {{"--eta-min", "5e-3"}},
      {{"--accumulate-grad-batches", "3", "--gradient-clip-val", "1"}},
      {{"--gradient-clip-val", "0.1", "--gradient-clip-algorithm", "value"}},
      {{"--early-stopping", "1", "--max-steps", "9"}, true, "9 steps"},
      {{"--freeze-bn-epochs", "1"}},
      {{"--val-split", "0.2", "--class-weights", "balanced"}},
      {{"--val-split", "train", "--scaling", "min-max"}},
      {{"--threads", "2"}, false},
      {{"--save-type", "safetensors", "--checkpoint-steps", "2"}, false},
      {{"--plot", "--ascii"}, false, "val_acc_epoch"}};
  const auto weights = [](const std::string& project) {
    std::string bytes;
    for (const auto& [name, tensor] :
         load_checkpoint(folder() + "/groups/" + project + "/software/training_ckpts/last.ckpt")
             .tensors)
      bytes.append(reinterpret_cast<const char*>(tensor.raw()), tensor.bytes());
    return bytes;
  };
  ASSERT_EQ(train({"--max-epochs", "2", "--project-dir", "groups", "--project", "plain"}).exit_code,
            0);
  const std::string plain = weights("plain");
  for (size_t i = 0; i < groups.size(); ++i) {
    const std::string project = fmt::format("group{}", i);
    std::vector<std::string> words = {"--max-epochs", "2",         "--project-dir",
                                      "groups",       "--project", project};
    words.insert(words.end(), groups[i].words.begin(), groups[i].words.end());
    const RunResult result = train(words);
    ASSERT_EQ(result.exit_code, 0) << join(groups[i].words, " ") << "\n" << result.err;
    EXPECT_EQ(weights(project) != plain, groups[i].changes) << join(groups[i].words, " ");
    EXPECT_NE(result.out.find(groups[i].shows), std::string::npos) << join(groups[i].words, " ");
  }
  EXPECT_TRUE(fs::exists(folder() + "/groups/group16/software/training_ckpts/best.safetensors"));
}

TEST(Train, MistakesAreOneClearLine) {
  struct Mistake {
    std::vector<std::string> words;
    std::string says;
  };
  test::write(folder() + "/typo.toml", "model = \"jsc-toy\"\n\nbatch_sise = 3\n");
  test::write(folder() + "/type.toml", "model = \"jsc-toy\"\nbatch_size = \"many\"\n");
  test::write(folder() + "/file", "");
  for (const Mistake& mistake : std::vector<Mistake>{
           {{"train", "jsc-toy"}, "no data set"},
           {{"train", "jsc-tou", "table.csv", "--target", "kind"}, "jsc-toy"},
           {{"train", "jsc-toy", "tabel.csv", "--target", "kind"}, "tabel.csv"},
           {{"train", "--config", "typo.toml"}, "typo.toml:3"},
           {{"train", "--config", "typo.toml"}, "did you mean 'batch_size'?"},
           {{"train", "--config", "type.toml"}, "type.toml:2"},
           {{"train", "--config", "nowhere.toml"}, "nowhere.toml"},
           {{"train", "jsc-toy", "table.csv", "--batch-size", "0"}, "--batch-size"},
           {{"train", "jsc-toy", "table.csv", "--learning-rate", "fast"}, "--learning-rate"},
           {{"train", "jsc-toy", "table.csv", "--training-optimizer", "adamm"}, "adamw"},
           {{"train", "jsc-toy", "table.csv", "--task", "lm"}, "running_text"},
           {{"train", "jsc-toy", "table.csv", "--load-type", "pl"}, "--load"},
           {{"train", "jsc-toy", "table.csv", "--load", "nothing.ckpt"}, "nothing.ckpt"},
           {{"train", "jsc-toy", "table.csv", "--target", "kind", "--project-dir", "file"}, "file"},
           {{"train", "jsc-toy", "table.csv", "--target", "kind", "--project", "../x"},
            "--project"},
           {{"train", "--resume", "nowhere"}, "run.json"},
           {{"generate", "--load", "nothing.gguf", "--prompt", "a"}, "no such file"},
           {{"predict", "jsc-toy", "--load", "table.csv", "--input", "table.csv"}, "table.csv"},
           {{"predict", "jsc-toy", "--input", "table.csv"}, "--load"}}) {
    const RunResult result = ch(mistake.words, folder());
    EXPECT_EQ(result.exit_code, 2) << join(mistake.words, " ") << "\n" << result.err;
    EXPECT_NE(result.err.find(mistake.says), std::string::npos) << join(mistake.words, " ") << "\n"
                                                                << result.err;
    EXPECT_TRUE(starts_with(result.err, "ch: ")) << result.err;
  }
}

TEST(Train, AFullDiskIsOneClearMessageAndTheBestCheckpointStays) {
  if (test::thread_sanitized) GTEST_SKIP() << "the sanitizer keeps memory in files of its own";
  ASSERT_EQ(train({"--project-dir", "full", "--project", "fits"}).exit_code, 0);
  const int64_t size = static_cast<int64_t>(
      fs::file_size(folder() + "/full/fits/software/training_ckpts/last.ckpt"));
  // Files may grow to a little over the checkpoint's size: the metrics outgrow that later.
  const std::string limited = fmt::format(
      "ulimit -f {}; exec \"$MASE_CH\" train jsc-toy table.csv --target kind --max-epochs 400 "
      "--batch-size 16 --log-every-n-steps 1 --project-dir full --project short",
      size / 1024 + 4);
  const RunResult result = test::run({"bash", "-c", limited}, folder());
  EXPECT_EQ(result.exit_code, 2) << result.err;
  EXPECT_NE(result.err.find("cannot write the file"), std::string::npos) << result.err;
  EXPECT_NO_THROW(load_checkpoint(folder() + "/full/short/software/training_ckpts/best.ckpt"));
  EXPECT_EQ(run_record("full/short")["status"].as_string(), "failed");
}

TEST(Train, ADivergedRunSaysSo) {
  const RunResult result = train({"--project-dir", "nan", "--project", "run", "--learning-rate",
                                  "1e38", "--training-optimizer", "sgd", "--max-epochs", "5"});
  EXPECT_EQ(result.exit_code, 1) << result.out << result.err;
  EXPECT_NE(result.err.find("diverged"), std::string::npos) << result.err;
  EXPECT_EQ(run_record("nan/run")["status"].as_string(), "diverged");
}

TEST(Train, AResumedRunKeepsItsOptions) {
  ASSERT_EQ(train({"--project-dir", "again", "--project", "run"}).exit_code, 0);
  const RunResult finished = train({"--resume", "again/run"});
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_NE(finished.out.find("finished already"), std::string::npos);
  const RunResult changed = train({"--resume", "again/run", "--batch-size", "8"});
  EXPECT_EQ(changed.exit_code, 2);
  EXPECT_NE(changed.err.find("batch_size"), std::string::npos) << changed.err;
}

// Killed after its record was there and before its first graph was: passes and all are run again,
// and no path that was never given is looked for beside the configuration.
TEST(Train, ARunKilledAtItsVeryStartIsResumed) {
  const std::string config = folder() + "/quantize_start.toml";
  test::write(config,
              "[passes.quantize]\nby = \"type\"\n[passes.quantize.linear.config]\n"
              "name = \"integer\"\ndata_in_width = 8\ndata_in_frac_width = 4\n"
              "weight_width = 8\nweight_frac_width = 4\nbias_width = 8\nbias_frac_width = 4\n");
  const auto run = [&](const std::string& project) {
    return train({"--project-dir", "start", "--project", project, "--config", config});
  };
  const RunResult whole = run("whole");
  ASSERT_EQ(whole.exit_code, 0) << whole.err;
  ASSERT_EQ(run("killed").exit_code, 0);
  const std::string killed = folder() + "/start/killed";
  std::filesystem::remove_all(killed + "/software/training_ckpts");
  Value record = run_record("start/killed");
  record["status"] = "running";
  test::write(killed + "/run.json", to_json(record));
  const RunResult resumed = train({"--resume", "start/killed"});
  ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_EQ(run_record("start/killed")["status"].as_string(), "finished");
  EXPECT_EQ(run_record("start/killed")["best"], run_record("start/whole")["best"]);
}

TEST(Train, ARunThatLearnsWidthsIsNotResumedAsAnother) {
  ASSERT_EQ(train({"--project-dir", "widths", "--project", "run"}).exit_code, 0);
  Value record = run_record("widths/run");
  record["status"] = "running";  // killed before it wrote a front
  bool known = false;
  List options = record["options"].as_list("options");
  for (Value& row : options)
    if (row["name"] == Value("learn_bits")) row["effective"] = known = true;
  record["options"] = options;
  ASSERT_TRUE(known);
  test::write(folder() + "/widths/run/run.json", to_json(record));
  const RunResult resumed = train({"--resume", "widths/run"});
  EXPECT_EQ(resumed.exit_code, 2);
  EXPECT_NE(resumed.err.find("--learn-bits"), std::string::npos) << resumed.err;
}

class Trained : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    const RunResult result =
        train({"--project-dir", "trained", "--project", "run", "--max-epochs", "8"});
    ASSERT_EQ(result.exit_code, 0) << result.err;
  }
  const std::string best = "trained/run/software/training_ckpts/best.ckpt";
};

TEST_F(Trained, TestPrintsTheLabsBox) {
  const RunResult result = ch({"test", "jsc-toy", "table.csv", "--target", "kind", "--load", best,
                               "--load-type", "pl", "--json", "figures.json", "--verbose"},
                              folder(), {"COLUMNS=72"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  std::string rule;
  for (int i = 0; i < 72; ++i) rule += "─";
  const Value figures = read_json(folder() + "/figures.json");
  const double accuracy = figures["test_acc_epoch"].as_double();
  EXPECT_GT(accuracy, 0.6);
  EXPECT_NE(result.out.find(rule + "\n       Test metric             DataLoader 0\n" + rule + "\n"),
            std::string::npos)
      << result.out;
  EXPECT_NE(result.out.find(python_float(accuracy) + "\n"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("Data set: table (csv)\n"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("Precision"), std::string::npos);
  EXPECT_NE(result.out.find("True \\ predicted"), std::string::npos);
  EXPECT_EQ(figures["evaluation"]["confusion"].as_list().size(), 3u);
}

TEST_F(Trained, TestGivesTheSameFiguresForEveryBatchSize) {
  const auto accuracy = [&](const char* batch) {
    const RunResult result = ch({"test", "jsc-toy", "table.csv", "--target", "kind", "--load", best,
                                 "--batch-size", batch, "--no-output", "--json", "b.json"},
                                folder());
    EXPECT_EQ(result.exit_code, 0) << result.err;
    const Value figures = read_json(folder() + "/b.json");
    return std::pair(figures["test_acc_epoch"].as_double(), figures["test_loss_epoch"].as_double());
  };
  const auto one = accuracy("1"), many = accuracy("1000");
  EXPECT_EQ(one.first, many.first);
  EXPECT_NEAR(one.second, many.second, 1e-6);
}

TEST_F(Trained, PredictReadsAndWritesEveryKind) {
  const auto predict = [&](std::vector<std::string> words) {
    std::vector<std::string> all = {"predict", "jsc-toy", "--load", best};
    all.insert(all.end(), words.begin(), words.end());
    const RunResult result = ch(all, folder());
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result.out;
  };
  predict({"--input", "table.csv", "--output", "a.safetensors"});
  const Tensor logits = load_safetensors(folder() + "/a.safetensors").at(0).second;
  ASSERT_EQ(logits.shape(), (Shape{400, 3}));
  // The same rows as bare numbers, through .npy and .safetensors.
  const std::vector<std::string> lines = split(strip(test::read(folder() + "/table.csv")), '\n');
  std::vector<float> raw;
  for (size_t row = 1; row < lines.size(); ++row)
    for (size_t f = 0; f < 3; ++f)
      raw.push_back(static_cast<float>(*parse_number(split(lines[row], ',')[f])));
  save_safetensors(folder() + "/raw.safetensors", {{"x", Tensor::of({400, 3}, raw)}});
  predict({"--input", "raw.safetensors", "--output", "b.npy"});
  predict({"--input", "raw.safetensors", "--output", "c.safetensors"});
  const Tensor again = load_safetensors(folder() + "/c.safetensors").at(0).second;
  for (int64_t i = 0; i < logits.numel(); ++i) EXPECT_NEAR(logits.item(i), again.item(i), 1e-5);
  const std::string npy = test::read(folder() + "/b.npy");
  EXPECT_EQ(npy.substr(1, 5), "NUMPY");
  EXPECT_EQ((npy.size() - 400 * 3 * 4) % 64, 0u);
  EXPECT_EQ(npy.substr(npy.size() - 400 * 3 * 4),
            std::string(reinterpret_cast<const char*>(again.raw()), again.bytes()));
  // Classes and probabilities agree with the logits.
  predict({"--input", "table.csv", "--output", "p.safetensors", "--probabilities"});
  const Tensor shares = load_safetensors(folder() + "/p.safetensors").at(0).second;
  EXPECT_NEAR(shares.item(0) + shares.item(1) + shares.item(2), 1, 1e-6);
  const std::string classes = predict({"--input", "table.csv", "--classes"});
  EXPECT_TRUE(starts_with(classes, "class,name\n")) << classes.substr(0, 40);
  EXPECT_EQ(split(strip(classes), '\n').size(), 401u);
}

TEST_F(Trained, PredictTakesPictures) {
  std::vector<float> pixels;  // of the cats
  for (const char* name : {"cat", "dog"}) {
    std::filesystem::create_directories(folder() + "/pictures/" + name);
    for (int i = 0; i < 3; ++i) {
      std::string bytes;
      for (int at = 0; at < 28 * 28; ++at)
        bytes += static_cast<char>((at * (3 + i) + (name[0] == 'c' ? 0 : 100)) % 251);
      test::write(fmt::format("{}/pictures/{}/{}.pgm", folder(), name, i),
                  "P5 28 28 255\n" + bytes);
      if (name[0] == 'c')
        for (const char byte : bytes) pixels.push_back(static_cast<unsigned char>(byte));
    }
  }
  save_safetensors(folder() + "/cats.safetensors", {{"x", Tensor::of({3, 784}, pixels)}});
  RunResult result =
      ch({"train", "lenet", "pictures", "--max-steps", "1", "--project", "run"}, folder());
  ASSERT_EQ(result.exit_code, 0) << result.err;
  // A path and the name with a folder are the same data, and both may be flipped.
  const auto trained = [&](std::vector<std::string> words, const std::string& project) {
    words.insert(words.begin(), {"train", "lenet"});
    words.insert(words.end(), {"--dataset-flip", "--dataset-crop", "2", "--max-epochs", "3",
                               "--batch-size", "2", "--project", project});
    const RunResult own = ch(words, folder());
    EXPECT_EQ(own.exit_code, 0) << own.err;
    std::string figures;  // without the last column, which is the time it took
    for (const std::string& line :
         split(test::read(folder() + "/mase_output/" + project + "/software/metrics.csv"), '\n'))
      figures += line.substr(0, line.rfind(',')) + "\n";
    return figures;
  };
  EXPECT_EQ(trained({"pictures"}, "path"),
            trained({"images", "--dataset-folder", "pictures"}, "name"));
  EXPECT_NE(result.out.find("--input picture.png --classes"), std::string::npos) << result.out;
  const auto predict = [&](const std::string& input) {
    const RunResult own = ch(
        {"predict", "--load", "mase_output/run/software/training_ckpts/best.mz", "--input", input},
        folder());
    EXPECT_EQ(own.exit_code, 0) << own.err;
    return own.out;
  };
  const auto named = [](const std::string& csv, const std::vector<std::string>& files) {
    std::vector<std::string> lines = split(strip(csv), '\n');
    for (size_t i = 0; i < lines.size(); ++i)
      lines[i] = (i == 0 ? "file" : files.at(i - 1)) + "," + lines[i];
    return join(lines, "\n") + "\n";
  };
  const std::vector<std::string> cats = {"pictures/cat/0.pgm", "pictures/cat/1.pgm",
                                         "pictures/cat/2.pgm"};
  EXPECT_EQ(predict("pictures/cat"), named(predict("cats.safetensors"), cats));
  // Several files are taken one after another, and each row says whose it is.
  const auto predict_all = [&](std::vector<std::string> inputs,
                               const std::vector<std::string>& options = {}) {
    inputs.insert(inputs.begin(),
                  {"predict", "mase_output/run/software/training_ckpts/best.mz", "--input"});
    inputs.insert(inputs.end(), options.begin(), options.end());
    const RunResult own = ch(inputs, folder());
    EXPECT_EQ(own.exit_code, 0) << own.err;
    return own.out;
  };
  EXPECT_EQ(predict_all({cats[0], cats[1], cats[2]}), predict("pictures/cat"));
  const std::vector<std::string> both =
      split(strip(predict_all({"cats.safetensors", "pictures/dog/1.pgm"}, {"--classes"})), '\n');
  ASSERT_EQ(both.size(), 5u);
  EXPECT_TRUE(starts_with(both[0], "file,class,name")) << both[0];
  EXPECT_TRUE(starts_with(both[1], "cats.safetensors,")) << both[1];
  EXPECT_TRUE(starts_with(both[4], "pictures/dog/1.pgm,")) << both[4];
  predict_all({"pictures/cat"}, {"--output", "named.safetensors"});
  Dict metadata;
  load_safetensors(folder() + "/named.safetensors", &metadata);
  EXPECT_EQ(metadata["files"].as_string(),
            R"(["pictures/cat/0.pgm","pictures/cat/1.pgm","pictures/cat/2.pgm"])");
  const std::vector<float> second(pixels.begin() + 784, pixels.begin() + 2 * 784);
  save_safetensors(folder() + "/one.safetensors", {{"x", Tensor::of({1, 784}, second)}});
  EXPECT_EQ(predict("pictures/cat/1.pgm"), named(predict("one.safetensors"), {cats[1]}));
  test::write(folder() + "/small.ppm", "P6 2 2 255\n123456123456");
  for (const char* input : {"small.ppm", "pictures"}) {
    result = ch(
        {"predict", "--load", "mase_output/run/software/training_ckpts/best.mz", "--input", input},
        folder());
    EXPECT_EQ(result.exit_code, 2) << input;
    EXPECT_NE(result.err.find(input), std::string::npos) << result.err;
  }
}

TEST_F(Trained, PredictRefusesWhatDoesNotFit) {
  save_safetensors(folder() + "/wide.safetensors", {{"x", Tensor({5, 7})}});
  const RunResult wide =
      ch({"predict", "jsc-toy", "--load", best, "--input", "wide.safetensors"}, folder());
  EXPECT_EQ(wide.exit_code, 2);
  EXPECT_NE(wide.err.find("7 values"), std::string::npos) << wide.err;
  const RunResult both = ch({"predict", "jsc-toy", "--load", best, "--input", "table.csv",
                             "--classes", "--probabilities"},
                            folder());
  EXPECT_EQ(both.exit_code, 2);
  const RunResult output =
      ch({"predict", "jsc-toy", "--load", best, "--input", "table.csv", "--output", "x.png"},
         folder());
  EXPECT_EQ(output.exit_code, 2);
}

TEST_F(Trained, TrainingGoesOnFromACheckpointAndFromAQuantisedGraph) {
  const RunResult further = train({"--load", best, "--load-type", "pl", "--max-epochs", "1",
                                   "--learning-rate", "1e-4", "--project-dir", "more"});
  EXPECT_EQ(further.exit_code, 0) << further.err;
  test::write(folder() + "/qat.toml",
              "model = \"jsc-toy\"\ndataset = \"table.csv\"\ntarget = \"kind\"\nmax_epochs = 2\n"
              "batch_size = 16\nlearning_rate = 1e-3\nload_name = \"" +
                  best +
                  "\"\nload_type = \"pl\"\n"
                  "[passes.quantize]\nby = \"type\"\n[passes.quantize.default.config]\n"
                  "name = \"NA\"\n[passes.quantize.linear.config]\nname = \"integer\"\n"
                  "data_in_width = 8\ndata_in_frac_width = 4\nweight_width = 8\n"
                  "weight_frac_width = 4\nbias_width = 8\nbias_frac_width = 4\n");
  const RunResult qat = ch({"train", "--config", "qat.toml", "--project-dir", "qat", "--project",
                            "run", "--freeze-bn-epochs", "1"},
                           folder());
  ASSERT_EQ(qat.exit_code, 0) << qat.out << qat.err;
  EXPECT_NE(qat.out.find("LinearInteger"), std::string::npos) << qat.out;
  const RunResult on = train({"--load", "qat/run/software/training_ckpts/best.mz", "--load-type",
                              "mz", "--max-epochs", "1", "--project-dir", "qat"});
  ASSERT_EQ(on.exit_code, 0) << on.err;
  EXPECT_NE(on.out.find("LinearInteger"), std::string::npos) << on.out;
}

// What quantisers learned travels in both kinds of files, and batch-norms fold on demand.
TEST_F(Trained, LearnedRangesAreTrainedKeptAndLoadedBack) {
  const std::string quantize =
      "[passes.quantize]\nby = \"type\"\n[passes.quantize.default.config]\nname = \"NA\"\n"
      "[passes.quantize.linear.config]\nname = \"scale_integer\"\ndata_in_width = 4\n"
      "data_in_is_signed = false\ndata_in_clip = \"learned\"\nweight_width = 4\n"
      "weight_scale = \"learned\"\n";
  test::write(folder() + "/lsq.toml", quantize);
  const RunResult trained =
      train({"--load", best, "--config", "lsq.toml", "--project-dir", "lsq", "--project", "run"});
  ASSERT_EQ(trained.exit_code, 0) << trained.out << trained.err;
  EXPECT_NE(trained.out.find("LinearScaleInteger"), std::string::npos) << trained.out;
  const std::string files = "lsq/run/software/training_ckpts/";
  const auto test = [&](std::vector<std::string> words) {
    std::vector<std::string> all = {"test",        "jsc-toy", "table.csv",    "--target", "kind",
                                    "--no-output", "--json",  "figures.json", "--load"};
    all.insert(all.end(), words.begin(), words.end());
    const RunResult result = ch(all, folder(), {"MASE_DATA=" + folder() + "/data"});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return read_json(folder() + "/figures.json")["test_loss_epoch"].as_double();
  };
  const double whole = test({files + "best.mz"});
  EXPECT_EQ(whole, test({files + "best.ckpt", "--config", "lsq.toml"}));
  const RunResult bare =
      ch({"test", "jsc-toy", "table.csv", "--target", "kind", "--load", files + "best.ckpt"},
         folder(), {"MASE_DATA=" + folder() + "/data"});
  EXPECT_EQ(bare.exit_code, 2);  // the tensors say that something is missing
  EXPECT_NE(bare.err.find("weight_scale"), std::string::npos) << bare.err;

  test::write(folder() + "/fold.toml", "fold_bn = true\nfreeze_bn_epochs = 1\n" + quantize);
  const RunResult folded = train(
      {"--load", best, "--config", "fold.toml", "--project-dir", "lsq", "--project", "folded"});
  ASSERT_EQ(folded.exit_code, 0) << folded.out << folded.err;
  EXPECT_NE(folded.out.find("Folded seq_blocks_2 + seq_blocks_3"), std::string::npos) << folded.out;
  test({"lsq/folded/software/training_ckpts/best.mz"});
}

TEST_F(Trained, TheBackwardPassMayBeQuantised) {
  const RunResult result = train({"--load", best, "--config",
                                  test::source_path("configs/examples/jsc_training_base.toml"),
                                  "--project-dir", "backward"});
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  EXPECT_NE(result.out.find("Pass training_base: changed the graph"), std::string::npos)
      << result.out;
}

}  // namespace
}  // namespace mase::train_test
