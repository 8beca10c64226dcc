// SPDX-License-Identifier: Apache-2.0
// Broken configuration files: each gives one line that names file and line number, and exit code 2,
// before anything runs.
#include <fmt/format.h>

#include <filesystem>

#include "mase/base/text.h"
#include "support/support.h"

namespace mase::broken_configs_test {
namespace {

struct Broken {
  const char* what;
  int line;            // where the mistake stands; 0: the file as a whole
  const char* answer;  // part of the message
  std::string text;
};

const std::string head = "model = \"jsc-toy\"\n";  // line 1
const std::string rule =
    "[passes.quantize]\nby = \"type\"\n[passes.quantize.linear.config]\n";  // lines 2 to 4
const std::string good =
    "name = \"integer\"\ndata_in_width = 8\ndata_in_frac_width = 4\nweight_width = 8\n";  // 5 to 8

const std::vector<Broken> configs = {
    {"misspelt top-level key", 2, "did you mean 'batch_size'?",
     head + "batch_sise = 8\n" + rule + good},
    {"wrong type of a top-level key", 2, "expected an integer",
     head + "batch_size = \"many\"\n" + rule + good},
    {"unknown model", 1, "did you mean 'jsc-toy'?", "model = \"jsc-toi\"\n" + rule + good},
    {"unknown data set", 2, "did you mean 'jsc'?", head + "dataset = \"jcs\"\n" + rule + good},
    {"checkpoint that is not there", 2, "no such file",
     head + "load_name = \"nowhere/best.ckpt\"\n" + rule + good},
    {"not TOML", 2, "not valid TOML", head + "[passes.quantize\nby = 1\n"},
    {"the same table twice", 5, "not valid TOML", head + rule + "[passes.quantize]\n"},
    {"no passes", 0, "the file lists no passes", head},
    {"passes that are no tables", 2, "expected a table", head + "passes.quantize = 3\n"},
    {"unknown pass", 2, "did you mean 'quantize'?", head + "[passes.quantise]\nby = \"type\"\n"},
    {"unknown pass in a list", 2, "unknown pass 'report_grph'",
     head + "[[passes.run]]\nname = \"report_grph\"\n"},
    {"listed pass without a name", 2, "'name' is missing",
     head + "[[passes.run]]\nwhich = [\"all\"]\n"},
    {"misspelt by", 3, "unknown choice 'typ'",
     head + "[passes.quantize]\nby = \"typ\"\n[passes.quantize.linear.config]\n" + good},
    {"misspelt key of an operand", 8, "unknown key 'weight_widht'; did you mean 'weight_width'?",
     head + rule +
         "name = \"integer\"\ndata_in_width = 8\ndata_in_frac_width = 4\nweight_widht = 8\n"
         "weight_frac_width = 4\n"},
    {"key of an operand left out", 4, "'weight_width' is missing",
     head + rule +
         "name = \"integer\"\ndata_in_width = 8\ndata_in_frac_width = 4\nweight_frac_width = 4\n"},
    {"misspelt format key", 5, "unknown key 'nmae'; did you mean 'name'?",
     head + rule + "nmae = \"integer\"\ndata_in_width = 8\nweight_width = 8\n"},
    {"misspelt operand key", 6, "did you mean 'weight_width'?",
     head + rule + "name = \"integer\"\nweigth_width = 8\ndata_in_width = 8\nweight_width = 8\n"},
    {"key of no operand", 9, "unknown key 'output_width'",
     head + rule + good + "output_width = 8\n"},
    {"text where a width is wanted", 6, "expected an integer",
     head + rule + "name = \"integer\"\ndata_in_width = \"eight\"\nweight_width = 8\n"},
    {"a width of nothing", 6, "too small",
     head + rule + "name = \"integer\"\ndata_in_width = 0\nweight_width = 8\n"},
    {"a negative width", 8, "too small",
     head + rule +
         "name = \"integer\"\ndata_in_width = 8\ndata_in_frac_width = 4\n"
         "weight_width = -8\n"},
    {"a width beyond every machine", 6, "too large",
     head + rule + "name = \"integer\"\ndata_in_width = 4000\nweight_width = 8\n"},
    {"a width of one too many", 6, "too large",
     head + rule + "name = \"integer\"\ndata_in_width = 65\nweight_width = 8\n"},
    {"an exponent wider than the word", 7, "leaves no room in a word of 4 bits",
     head + rule +
         "name = \"minifloat_ieee\"\ndata_in_width = 4\ndata_in_exponent_width = 6\n"
         "weight_width = 8\nweight_exponent_width = 4\n"},
    {"blocks of nothing", 6, "a block needs at least 1 entry",
     head + rule + "name = \"block_fp\"\ndata_in_block_size = [0]\nweight_width = 8\n"},
    {"microscaling blocks of nothing", 7, "too small",
     head + rule +
         "name = \"mxint\"\ndata_in_width = 8\ndata_in_block_size = 0\nweight_width = 8\n"},
    {"unknown format", 5, "unknown format 'interger'",
     head + rule + "name = \"interger\"\ndata_in_width = 8\nweight_width = 8\n"},
    {"no format", 4, "'name' is missing", head + rule + "data_in_width = 8\nweight_width = 8\n"},
    {"a number for a format", 5, "expected text",
     head + rule + "name = 8\ndata_in_width = 8\nweight_width = 8\n"},
    {"missing operand", 4, "no key for operand 'weight'",
     head + rule + "name = \"integer\"\ndata_in_width = 8\n"},
    {"op that the network lacks", 5, "the network has:",
     head + "[passes.quantize]\nby = \"type\"\n\n[passes.quantize.matmul.config]\n" + good},
    {"misspelt op", 4, "did you mean 'linear'?",
     head + "[passes.quantize]\nby = \"type\"\n[passes.quantize.liner.config]\n" + good},
    {"node that is not there", 4, "did you mean",
     head + "[passes.quantize]\nby = \"name\"\n[passes.quantize.seq_blocks_99.config]\n" + good},
    {"op under by = name", 4, "set by = \"type\"",
     head + "[passes.quantize]\nby = \"name\"\n[passes.quantize.linear.config]\n" + good},
    {"expression that does not compile", 4, "is not a regular expression",
     head + "[passes.quantize]\nby = \"regex_name\"\n[passes.quantize.\"seq_(\".config]\n" + good},
    {"expression that matches nothing", 4, "has a name that matches 'fc.*'",
     head + "[passes.quantize]\nby = \"regex_name\"\n[passes.quantize.\"fc.*\".config]\n" + good},
    {"rules that contradict each other", 9, "already taken by 'seq_.*'",
     head + "[passes.quantize]\nby = \"regex_name\"\n[passes.quantize.\"seq_.*\".config]\n" + good +
         "[passes.quantize.\"seq_blocks_2\".config]\n" + good},
    {"config keys in the wrong table", 5, "put it below [passes.quantize.linear.config]",
     head + "[passes.quantize]\nby = \"type\"\n[passes.quantize.linear]\nname = \"integer\"\n"},
    {"quantize without a rule", 2, "no rule says what to quantise",
     head + "[passes.quantize]\nby = \"type\"\n"},
    {"unknown statistic", 4, "did you mean 'variance_precise'?",
     head + "[passes.profile_statistics]\ntarget_weight_nodes = [\"linear\"]\n"
            "[passes.profile_statistics.weight_statistics.variance_precice]\n"},
    {"quantile above one", 5, "too large",
     head + "[passes.profile_statistics]\ntarget_activation_nodes = [\"relu\"]\n"
            "[passes.profile_statistics.activation_statistics.range_quantile]\nquantile = 97\n"},
    {"statistics of no nodes", 3, "names no node",
     head + "[passes.profile_statistics]\n"
            "weight_statistics = {variance_precise = {}}\n"},
    {"dims that are no dimensions", 5, "dims",
     head + "[passes.profile_statistics]\ntarget_weight_nodes = [\"linear\"]\n"
            "[passes.profile_statistics.weight_statistics.abs_mean]\ndims = \"some\"\n"},
    {"unknown metadata kind", 3, "expected a list of",
     head + "[passes.report_node_meta_param]\nwhich = [\"softwear\"]\n"},
    {"sparsity above one", 3, "too large", head + "[passes.prune.weight]\nsparsity = 1.5\n"},
    {"unknown pruning method", 4, "choose one of",
     head + "[passes.prune.weight]\nsparsity = 0.5\nmethod = \"l7\"\n"},
    {"nothing to prune", 2, "nothing says what to prune", head + "[passes.prune]\n"},
    {"unknown calibration method", 3, "choose one of",
     head + "[passes.calibrate]\nmethod = \"guess\"\n"},
};

TEST(BrokenConfigs, EachGivesOneLineWithFileAndLine) {
  EXPECT_GE(configs.size(), 30u);
  const std::string folder = test::temporary_folder();
  for (const Broken& broken : configs) {
    SCOPED_TRACE(broken.what);
    test::write(folder + "/broken.toml", broken.text);
    const test::RunResult result = test::ch({"transform", "--config", "broken.toml"}, folder);
    EXPECT_EQ(result.exit_code, 2) << result.out << result.err;
    EXPECT_EQ(result.out, "");
    const std::string place =
        broken.line > 0 ? fmt::format("broken.toml:{}: ", broken.line) : "broken.toml";
    EXPECT_NE(result.err.find(place), std::string::npos) << result.err;
    EXPECT_NE(result.err.find(broken.answer), std::string::npos) << result.err;
    EXPECT_EQ(split(strip(result.err), '\n').size(), 1u) << result.err;
    EXPECT_FALSE(std::filesystem::exists(folder + "/mase_output"));
  }
}

TEST(BrokenConfigs, AllMistakesAreToldAtOnce) {
  const std::string folder = test::temporary_folder();
  test::write(folder + "/broken.toml",
              head + "batch_sise = 4\n" +
                  "[passes.quantize]\nby = \"type\"\n[passes.quantize.linear.config]\n"
                  "name = \"integer\"\ndata_in_width = 0\nweigth_width = 8\nweight_width = 8\n"
                  "[passes.prune.weight]\nsparsity = 2\n[passes.repot_graph]\n");
  const test::RunResult result = test::ch({"transform", "--config", "broken.toml"}, folder);
  EXPECT_EQ(result.exit_code, 2);
  for (const int line : {2, 7, 8, 11, 12})
    EXPECT_NE(result.err.find(fmt::format("broken.toml:{}: ", line)), std::string::npos)
        << line << "\n"
        << result.err;
  EXPECT_EQ(split(strip(result.err), '\n').size(), 5u) << result.err;
}

}  // namespace
}  // namespace mase::broken_configs_test
