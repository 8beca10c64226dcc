// SPDX-License-Identifier: Apache-2.0
// ch compress: number formats times methods in one table.
#include <cstdio>

#include "mase/base/text.h"
#include "mase/cli/options.h"
#include "mase/cli/terminal.h"
#include "mase/run/compress/compress.h"

namespace mase::compress_command {
namespace {

std::string progress_text(const CompressRow& row, size_t done, size_t all) {
  if (done == 0) return fmt::format("[0/{}] as it was: {:.6g}", all, row.value);
  const std::string name =
      fmt::format("[{}/{}] {}  {}", done, all, printable(row.format), printable(row.method));
  if (!row.trouble.empty()) return name + "  not done: " + printable(row.trouble);
  return fmt::format("{}  {:.2f} bits  {:.6g}  {:.1f} s", name, row.bits, row.value, row.seconds);
}

int run(const Arguments& arguments) {
  catch_interrupts();
  const Settings settings = merge_settings("compress", arguments);
  const Logger log(settings, true);
  for (const std::string& warning : settings.warnings) log.warning(warning);
  const CompressSpec spec = compress_spec(settings);
  Observer observer = log.observer();
  const std::unique_ptr<Experiment> experiment = compress_experiment(settings, spec, observer);
  const auto folder_for = [&] {
    if (!spec.resume.empty()) return resumed_compress_folder(spec);
    OutputSpec output = output_spec(settings);
    output.record["version"] = program_version();
    output.record["command"] = Value::of(arguments.command_line);
    return experiment->create_folder(output, "compress");
  };
  CompressCalls calls;
  calls.finished = [&](const CompressRow& row, size_t done, size_t all) {
    log.text(progress_text(row, done, all) + "\n");
    std::fflush(stdout);
  };
  const CompressResult result = compress(*experiment, spec, observer, folder_for, calls);
  fmt::print("\n{}", compress_table(result));
  log.info(fmt::format("Results: {}", printable(result.folder + "/software/compress")));
  if (!result.stopped) return 0;
  log.info(fmt::format("Interrupted. The same command with --resume {} goes on with it.",
                       printable(result.folder)));
  return 130;
}

const Register<CommandRecord> registered{{
    .name = "compress",
    .group = CommandGroup::quantise,
    .summary = "Try number formats and methods of low-bit networks, in one table",
    .help =
        "Every format is tried with every method, on weights of linear layers, convolutions and "
        "attention; figures are those of test rows, which no method sees. Methods are passes "
        "behind the formats (gptq, awq, smoothquant, clip_search, adaround, bias_correction, "
        "lqer, ...), chained by +; rtn in a chain says where the formats come, for passes that "
        "work before them. What a method cannot do is told below the table.",
    .positionals = {network_word(), dataset_word()},
    .options = {general_options() + config_options() + data_options() + compress_options()},
    .tables = {"passes"},
    .examples =
        {"ch compress jsc-toy jsc --load best.ckpt --formats group_integer:width=4 nf4 --methods "
         "rtn gptq awq+clip_search",
         "ch compress --load mobilenet.mz --formats scale_integer:width=8,granularity=tensor "
         "--methods rtn fuse_batch_norm+cross_layer_equalisation+rtn+bias_correction",
         "ch compress --load FOLDER --input hamlet.txt --calibration macbeth.txt --formats "
         "group_integer:width=4,affine=true --methods rtn gptq"},
    .word_lists = {"formats", "methods", "leave"},
    .run = run,
}};

}  // namespace
}  // namespace mase::compress_command
