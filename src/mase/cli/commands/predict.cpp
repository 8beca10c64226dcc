// SPDX-License-Identifier: Apache-2.0
// ch predict: rows from a file in, logits, probabilities or classes out.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>

#include "mase/base/file.h"
#include "mase/base/table.h"
#include "mase/cli/options.h"
#include "mase/cli/terminal.h"
#include "mase/data/pictures.h"
#include "mase/run/experiment.h"
#include "mase/run/input_rows.h"
#include "mase/run/sentences.h"
#include "mase/text/tokenizer.h"
#include "mase/train/metric.h"

namespace mase::predict_command {
namespace {

std::string extension_of(const std::string& path) {
  return lower_case(std::filesystem::path(path).extension().string());
}

int64_t width_of(const Tensor& tensor) {
  return tensor.numel() / std::max<int64_t>(1, tensor.shape().at(0));
}

void to_probabilities(float* row, int64_t count) {
  const float top = *std::max_element(row, row + count);
  double sum = 0;
  for (int64_t c = 0; c < count; ++c) sum += std::exp(static_cast<double>(row[c] - top));
  for (int64_t c = 0; c < count; ++c)
    row[c] = static_cast<float>(std::exp(static_cast<double>(row[c] - top)) / sum);
}

void write_npy(const std::string& path, const Tensor& tensor) {
  std::string shape;
  for (const int64_t dim : tensor.shape()) shape += fmt::format("{}, ", dim);
  if (tensor.shape().size() > 1) shape.erase(shape.size() - 2);
  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}",
                                   tensor.dtype() == DType::i64 ? "<i8" : "<f4", shape);
  header += std::string(63 - (header.size() + 10) % 64, ' ') + "\n";
  std::string head = "\x93NUMPY\x01";
  head += '\0';
  head += static_cast<char>(header.size() & 0xff);
  head += static_cast<char>(header.size() >> 8);
  write_file_atomically(path, [&](int fd) {
    write_all(fd, (head + header).data(), head.size() + header.size(), path);
    write_all(fd, tensor.raw(), tensor.bytes(), path);
  });
}

// `files`: of each row, or none.
std::string csv_text(const Tensor& result, const std::vector<std::string>& names,
                     const std::vector<std::string>& files, bool classes) {
  const int64_t rows = result.shape().at(0), width = rows ? width_of(result) : 0;
  std::vector<std::string> header;
  if (classes) {
    header = {"class"};
    if (!names.empty()) header.push_back("name");
  } else {
    for (int64_t c = 0; c < std::max<int64_t>(1, width); ++c)
      header.push_back(static_cast<size_t>(c) < names.size() ? names[static_cast<size_t>(c)]
                                                             : std::to_string(c));
  }
  if (!files.empty()) header.insert(header.begin(), "file");
  Table table(header);
  for (int64_t row = 0; row < rows; ++row) {
    std::vector<std::string> cells;
    if (!files.empty()) cells.push_back(files[static_cast<size_t>(row)]);
    if (classes) {
      const int64_t index = result.data<int64_t>()[row];
      cells.push_back(std::to_string(index));
      if (!names.empty())
        cells.push_back(
            static_cast<size_t>(index) < names.size() ? names[static_cast<size_t>(index)] : "");
    } else {
      for (int64_t c = 0; c < width; ++c)
        cells.push_back(fmt::format("{}", result.data<float>()[row * width + c]));
    }
    table.add(cells);
  }
  return table.csv();
}

void write_result(const std::string& path, const Tensor& result, const std::string& what,
                  const std::vector<std::string>& names, const std::vector<std::string>& files) {
  const std::string kind = extension_of(path);
  const bool classes = what == "classes";
  if (path == "-")
    std::fputs(csv_text(result, names, files, classes).c_str(), stdout);
  else if (kind == ".npy")
    write_npy(path, result);
  else if (kind == ".safetensors")
    save_safetensors(path, {{what, result}},
                     files.empty() ? Dict{} : Dict{{"files", to_json(Value::of(files))}});
  else
    write_file_atomically(path, csv_text(result, names, files, classes));
}

// The columns a regression was trained to predict.
std::vector<std::string> target_names(const NetworkNotes& notes) {
  if (!notes.preprocessing || !notes.preprocessing->description.is_dict()) return {};
  const Value& target = notes.preprocessing->description["target"];
  if (!target.is_dict() || !target["columns"].is_list()) return {};
  return target["columns"].as_string_list("target.columns");
}

int run(const Arguments& arguments) {
  const Settings settings = merge_settings("predict", arguments);
  const Logger log(settings, settings["output"].as_string() != "-");
  for (const std::string& warning : settings.warnings) log.warning(warning);
  const std::string output = settings["output"].as_string(), kind = extension_of(output);
  if (output != "-" && kind != ".npy" && kind != ".csv" && kind != ".safetensors")
    throw Error("--output", fmt::format("cannot write '{}'", printable(output)),
                "name a .npy, .csv or .safetensors file, or - for the terminal");
  if (settings["classes"].as_bool() && settings["probabilities"].as_bool())
    throw Error("--classes", "excludes --probabilities", "choose one");
  ExperimentSpec spec = experiment_spec(settings);
  if (spec.network.load.empty())
    throw Error("--load", "is missing",
                "name the network that predicts: --load RUN/software/training_ckpts/best.mz");
  if (!settings.has("input"))
    throw Error("--input", "is missing",
                "name the rows to predict: --input rows.csv, rows.npy or picture.png");
  spec.data.name.clear();
  const std::vector<std::string> rows_files = settings["input"].as_string_list("input");
  InputOptions reading;
  if (settings.has("tensor")) reading.tensor = settings["tensor"].as_string();
  if (settings.has("vocabulary")) reading.vocabulary = settings["vocabulary"].as_string();
  // Sentences of any length, images of any size: the network is built for those that are given. One
  // that has a single input takes the size of the first file.
  // Of sentences for a folder each length gets a network of its own when they are predicted.
  if ((std::filesystem::is_directory(spec.network.load) || Tokenizer::is_in(spec.network.load)) &&
      !are_sentences_for_folder(spec.network.load, rows_files))
    for (const std::string& file : rows_files) {
      spec.network.input_shapes.push_back(input_shape(file, reading));
      if (holds_pictures(file)) break;  // one input, of however many files
    }
  else if (ends_with(lower_case(spec.network.load), ".onnx"))
    for (const std::string& file : rows_files)
      spec.network.input_shapes.push_back(input_shape(file, reading));
  // Predictions on stdout leave no place for log lines, but warnings go to stderr.
  const Logger warnings(settings, true);
  Observer observer = log.observer();
  if (output == "-")
    observer.log = [warnings](LogLevel level, const std::string& line) {
      if (level == LogLevel::warning) warnings.warning(line);
    };
  Experiment experiment(spec, observer);
  experiment.prepare();
  PredictSpec wanted{.inputs = rows_files,
                     .tensor = reading.tensor,
                     .preprocess = settings["preprocess"].as_bool(),
                     .keep_places = settings["keep_places"].as_bool(),
                     .vocabulary = reading.vocabulary};
  // A network of another tool says nothing about features, and nobody expects it to.
  const bool foreign = ends_with(lower_case(experiment.spec().network.load), ".onnx");
  const Graph& graph = experiment.graph();
  const bool tokens = graph.node(graph.placeholders().at(0)).element == DType::i64;
  const NetworkNotes& notes = experiment.network().notes;
  if (wanted.preprocess && !foreign && !tokens && !notes.preprocessing)
    warnings.warning(fmt::format("{} does not say how features are scaled: rows go in as they are",
                                 experiment.spec().network.load));
  if (wanted.preprocess && foreign && notes.preprocessing)
    log.info(fmt::format("Rows are scaled as {} says (--no-preprocess: they go in as they are)",
                         experiment.spec().network.load));
  const Prediction prediction = experiment.predict(wanted);
  const std::vector<Tensor>& results = prediction.outputs;
  Tensor result = results.at(0);
  if (results.size() > 1 && output == "-")
    throw Error("--output", fmt::format("the network has {} outputs", results.size()),
                "name a .npy or .safetensors file");
  for (const char* option : {"classes", "probabilities"})
    if (settings[option].as_bool() && notes.task == "regression")
      throw Error(fmt::format("--{}", option), "the network predicts numbers, not classes",
                  "leave it out");
  if (result.shape().empty()) result = result.reshaped({1});
  const int64_t rows = result.shape().at(0), width = rows ? width_of(result) : 1;
  const bool numbers = notes.task == "regression";
  // Of several outputs, or one of several axes, nobody knows what they are.
  const bool unknown = results.size() > 1 || result.shape().size() > 2;
  std::string what = numbers ? "predictions" : unknown ? "outputs" : "logits";
  if (settings["probabilities"].as_bool()) {
    what = "probabilities";
    for (int64_t row = 0; row < rows; ++row)
      to_probabilities(result.mutable_data<float>() + row * width, width);
  } else if (settings["classes"].as_bool()) {
    what = "classes";
    Tensor classes({rows}, DType::i64);
    for (int64_t row = 0; row < rows; ++row) {
      const float* outputs = result.data<float>() + row * width;
      const bool left_out = wanted.keep_places && std::isnan(outputs[0]);
      classes.mutable_data<int64_t>()[row] = left_out ? -1 : arg_max(outputs, width);
    }
    result = classes;
  }
  write_result(output, result, what, numbers ? target_names(notes) : notes.class_names,
               prediction.files);
  if (kind == ".npy" && !prediction.files.empty())
    log.info("A .npy has no place for the names of the files: its rows are in their order");
  // Further outputs in files beside it: out_1.npy, out_2.npy.
  for (size_t i = 1; i < results.size(); ++i) {
    std::filesystem::path path(output);
    path.replace_filename(
        fmt::format("{}_{}{}", path.stem().string(), i, path.extension().string()));
    write_result(path.string(), results[i], fmt::format("output_{}", i), {}, prediction.files);
    log.info(fmt::format("Wrote output {} to {}", i, path.string()));
  }
  if (output != "-") log.info(fmt::format("Wrote {} of {} rows to {}", what, rows, output));
  return 0;
}

std::vector<Field> own_options() {
  const char* group = "Predict options";
  return {
      {.name = "input",
       .type = FieldType::list,
       .help =
           "files of rows: .npy, .npz, .safetensors, .csv (with or without names), .arff or .h5; "
           ".png, .ppm or .pgm or folders of them, taken by name; .txt with a sentence on each "
           "line. Several are taken one after another; a network of several inputs takes one for "
           "each, in the graph's order",
       .group = group},
      {.name = "output",
       .type = FieldType::text,
       .default_value = "-",
       .help = ".npy, .csv or .safetensors; - prints CSV",
       .group = group},
      {.name = "tensor",
       .type = FieldType::text,
       .help = "which array of a .safetensors or .npz file (default: x, or the only one)",
       .group = group},
      {.name = "vocabulary",
       .type = FieldType::text,
       .help =
           "of a .txt: a tokenizer.json, a vocab.txt or another text with a token on each line "
           "(default: the one in the network's folder or that it was trained with; without any, "
           "words are token ids)",
       .group = group},
      {.name = "classes",
       .type = FieldType::boolean,
       .default_value = false,
       .help = "write the number of the likeliest class",
       .group = group},
      {.name = "probabilities",
       .type = FieldType::boolean,
       .default_value = false,
       .help = "write the softmax of the logits",
       .group = group},
      {.name = "preprocess",
       .type = FieldType::boolean,
       .default_value = true,
       .help = "scale raw rows as the checkpoint says; without, rows go in as they are",
       .group = group},
      {.name = "keep_places",
       .type = FieldType::boolean,
       .default_value = false,
       .help = "rows left out by --drop-bad-rows keep their places: nan, or class -1",
       .group = group}};
}

const Register<CommandRecord> registered{{
    .name = "predict",
    .group = CommandGroup::train,
    .summary = "Run a trained network on rows of a file",
    .help =
        "Files of ch train (best.mz, best.ckpt) and what ch export makes of them (.onnx) hold the "
        "network and how features are scaled, and raw rows are scaled that way; other "
        "checkpoints take rows as they are.",
    .positionals = {network_word()},
    .options = {without(general_options(), {"task", "seed", "project", "project_dir"}) +
                config_options() + only(data_options(), {"drop_bad_rows"}) + own_options()},
    .tables = {"passes"},
    .examples = {"ch predict --load best.mz --input rows.csv --classes",
                 "ch predict jsc-10x --load best.ckpt --input rows.npy --output logits.npy",
                 "ch predict --load best.mz --input photographs --probabilities",
                 "ch predict best.mz --input rows.csv rows.npy --output both.csv",
                 "ch predict bert.onnx --input ids.npy types.npy --output out.npy",
                 "ch predict --load FOLDER --input ids.npy mask.npy --output logits.npy"},
    .word_lists = {"input"},
    .run = run,
}};

}  // namespace
}  // namespace mase::predict_command
