// SPDX-License-Identifier: Apache-2.0
// A stage on a vector: some inputs by some outputs are multiplied each clock cycle. Weights of few
// clock cycles are case statements, others a memory with its contents written out: nothing is read
// from files.
#include <algorithm>

#include "mase/hardware/emit/verilog_text.h"
#include "mase/hardware/stream/stage_text.h"

namespace mase {
namespace {

std::string slice(const std::string& name, int index, int width) {
  return fmt::format("{}[{}:{}]", name, (index + 1) * width - 1, index * width);
}

// A table by index: `case` with one line an entry.
std::string rom(const std::string& name, const std::string& address, int address_bits,
                const std::vector<std::vector<int64_t>>& entries, int width) {
  const int total = static_cast<int>(entries[0].size()) * width;
  if (entries.size() == 1)
    return fmt::format("  wire {}{} = {};\n", sliced_range(total), name,
                       packed_literal(entries[0], width));
  std::string text = fmt::format("  logic {}{};\n  always_comb\n    case ({})\n",
                                 sliced_range(total), name, address);
  for (size_t k = 0; k < entries.size(); ++k)
    text += fmt::format(
        "      {}: {} = {};\n",
        k + 1 == entries.size() ? std::string("default") : fmt::format("{}'d{}", address_bits, k),
        name, packed_literal(entries[k], width));
  return text + "    endcase\n";
}

class VectorWriter {
 public:
  VectorWriter(const StreamStage& stage, const StagePlan& plan, std::string module,
               Multipliers multipliers)
      : stage_(stage),
        module_(std::move(module)),
        multipliers_(multipliers),
        before_(plan.before),
        after_(plan.after),
        in_depth_(stage.inputs() / before_),
        out_depth_(stage.outputs() / after_),
        weight_width_(stage.weight_width()),
        sum_width_(stage.sum_width()) {}

  std::string text() const {
    std::string out = stage_head(
        fmt::format(
            "// {}: {} features to {}, {} by {} products each clock cycle, {} cycles a row.\n"
            "// Inputs of {} bits ({}, {} after the point), weights of {}, sums of {}, results of "
            "{}"
            " ({}, {} after the point).\n"
            "// Sums are wide enough for every order; results may not need their highest bits.\n",
            stage_.name, stage_.inputs(), stage_.outputs(), before_, after_, in_depth_ * out_depth_,
            stage_.in.width, stage_.in.is_signed ? "signed" : "from zero up", stage_.frac_in,
            weight_width_, sum_width_, stage_.out.width,
            stage_.out.is_signed ? "signed" : "from zero up", stage_.frac_out),
        module_, before_ * stage_.in.width, after_ * stage_.out.width);
    out += control_text() + operand_text() + sums_text() + functions_text() + registers_text();
    return out + "endmodule\n\n`default_nettype wire\n";
  }

 private:
  std::string control_text() const {
    std::string out =
        "  // A finished sum waits here until the output register is free.\n"
        "  logic done;\n"
        "  wire move = done & (~data_out_0_valid | data_out_0_ready);\n";
    if (in_depth_ > 1) out += fmt::format("  logic [{}:0] beat;\n", index_bits(in_depth_) - 1);
    if (out_depth_ > 1) {
      out += fmt::format(
          "  // Two rows: one is computed with, several times over, while the next one arrives.\n"
          "  logic [{0}:0] group{1};\n"
          "  logic [1:0] full;\n  logic arriving, computing;\n",
          index_bits(out_depth_) - 1, functions_differ() ? ", done_group" : "");
      if (in_depth_ > 1) out += fmt::format("  logic [{}:0] arrived;\n", index_bits(in_depth_) - 1);
      out += fmt::format(
          "  wire last_arrival = {};\n"
          "  wire take = data_in_0_valid & data_in_0_ready;\n"
          "  assign data_in_0_ready = ~full[arriving];\n"
          "  wire step = full[computing] & (~done | move);\n"
          "  wire last_group = group == {}'d{};\n",
          in_depth_ > 1 ? fmt::format("arrived == {}'d{}", index_bits(in_depth_), in_depth_ - 1)
                        : std::string("1'b1"),
          index_bits(out_depth_), out_depth_ - 1);
    } else {
      out +=
          "  wire step = data_in_0_valid & (~done | move);\n"
          "  assign data_in_0_ready = ~done | move;\n";
    }
    out += in_depth_ > 1 ? fmt::format("  wire last_beat = beat == {}'d{};\n",
                                       index_bits(in_depth_), in_depth_ - 1)
                         : "  wire last_beat = 1'b1;\n";
    return out;
  }

  // This cycle's elements and weights.
  std::string operand_text() const {
    const int bits = before_ * stage_.in.width;
    std::string out;
    if (out_depth_ == 1)
      out += fmt::format("  wire {}elements = data_in_0;\n", sliced_range(bits));
    else
      out += fmt::format("  logic {0}rows [0:{1}];\n  wire {0}elements = rows[{2}];\n",
                         sliced_range(bits), row_places() - 1, place("computing", "beat"));
    std::vector<std::vector<int64_t>> words, biases;
    for (int group = 0; group < out_depth_; ++group) {
      biases.emplace_back();
      for (int lane = 0; lane < after_; ++lane)
        biases.back().push_back(stage_.constants[index(group, lane)]);
      for (int beat = 0; beat < in_depth_; ++beat) {
        words.emplace_back();
        for (int lane = 0; lane < after_; ++lane)
          for (int k = 0; k < before_; ++k)
            words.back().push_back(
                stage_.weights[static_cast<size_t>(beat * before_ + k)][index(group, lane)]);
      }
    }
    out += from_memory() ? memory_text(words) : weights_text(std::move(words));
    out += rom("biases", "group", index_bits(out_depth_), biases, sum_width_);
    return out;
  }

  bool from_memory() const { return int64_t{in_depth_} * out_depth_ > most_table_words; }

  std::string weights_text(std::vector<std::vector<int64_t>> words) const {
    const bool both = in_depth_ > 1 && out_depth_ > 1;
    int address_bits = index_bits(in_depth_ > 1 ? in_depth_ : out_depth_);
    std::string address = in_depth_ > 1 ? "beat" : "group";
    if (both) {
      // {group, beat} with holes where the number of beats is no power of two.
      address = "{group, beat}";
      address_bits = index_bits(in_depth_) + index_bits(out_depth_);
      std::vector<std::vector<int64_t>> spread;
      for (int group = 0; group < out_depth_; ++group)
        for (int beat = 0; beat < 1 << index_bits(in_depth_); ++beat)
          spread.push_back(
              words[static_cast<size_t>(group * in_depth_ + std::min(beat, in_depth_ - 1))]);
      words = std::move(spread);
    }
    return rom("weights", address, address_bits, words, weight_width_);
  }

  // Many words are read from a memory, a clock cycle before they are used.
  std::string memory_text(const std::vector<std::vector<int64_t>>& words) const {
    const int bits = index_bits(static_cast<int64_t>(words.size()));
    const int width = static_cast<int>(words[0].size()) * weight_width_;
    std::string out = fmt::format("  logic {}words [0:{}];\n  initial begin\n", sliced_range(width),
                                  words.size() - 1);
    for (size_t k = 0; k < words.size(); ++k)
      out += fmt::format("    words[{}] = {};\n", k, packed_literal(words[k], weight_width_));
    return out + fmt::format(
                     "  end\n  logic [{0}:0] place;\n"
                     "  wire [{0}:0] next_place = rst ? {1}'d0 : ~step ? place\n"
                     "      : place == {1}'d{2} ? {1}'d0 : place + {1}'d1;\n"
                     "  logic {3}weights;\n"
                     "  always_ff @(posedge clk) begin\n    place <= next_place;\n"
                     "    weights <= words[next_place];\n  end\n",
                     bits - 1, bits, words.size() - 1, sliced_range(width));
  }

  // One product of look-up tables: two bits of the weight at a time choose 0, x, 2x or 3x; the
  // highest two bits choose 0, x, -2x or -x. Every row adds to what is left of the one below it.
  std::string product_text(int lane, int k) const {
    const int rows = (weight_width_ + 1) / 2, width = stage_.in.width + 2;
    const std::string name = fmt::format("{}_{}", lane, k);
    const int at = (lane * before_ + k) * weight_width_;
    std::string out, low;
    for (int row = 0; row < rows; ++row) {
      const bool top = row + 1 == rows;
      const std::string w0 = fmt::format("weights[{}]", at + 2 * row);
      const std::string w1 = 2 * row + 1 < weight_width_
                                 ? fmt::format("weights[{}]", at + 2 * row + 1)
                                 : w0;  // the sign, once more
      out += fmt::format(
          "  wire [{0}:0] r_{1}_{2} = {3} ? ({4} ? {5}_{6} : {7}_{6}) : ({4} ? x1_{6} : {8}'d0);\n",
          width - 1, name, row, w1, w0, top ? "xm1" : "x3", k, top ? "xm2" : "x2", width);
      const std::string above =
          row == 0 ? ""
                   : fmt::format("{{{{2{{{}}}}}, a_{}_{}[{}:2]}}",
                                 stage_.in.is_signed
                                     ? fmt::format("a_{}_{}[{}]", name, row - 1, width - 1)
                                     : std::string("1'b0"),
                                 name, row - 1, width - 1);
      out += fmt::format("  wire [{0}:0] a_{1}_{2} = {3}r_{1}_{2};\n", width - 1, name, row,
                         row == 0 ? "" : above + " + ");
      if (!top) low = fmt::format("a_{}_{}[1:0]{}{}", name, row, low.empty() ? "" : ", ", low);
    }
    const int own = product_width();
    return out + fmt::format("  wire [{}:0] p_{} = {{a_{}_{}{}{}}};\n", own - 1, name, name,
                             rows - 1, low.empty() ? "" : ", ", low);
  }
  int product_width() const { return stage_.in.width + 2 + 2 * ((weight_width_ + 1) / 2 - 1); }

  // Multiples that all lanes share, two bits wider than x.
  std::string multiples_text(int k) const {
    const int width = stage_.in.width + 2;
    return fmt::format(
        "  wire [{0}:0] x1_{1} = {2};\n  wire [{0}:0] x2_{1} = {{x1_{1}[{3}:0], 1'b0}};\n"
        "  wire [{0}:0] x3_{1} = x1_{1} + x2_{1};\n"
        "  wire [{0}:0] xm1_{1} = ~x1_{1} + {4}'d1;\n"
        "  wire [{0}:0] xm2_{1} = {{xm1_{1}[{3}:0], 1'b0}};\n",
        width - 1, k, element_text("elements", k, stage_.in.width, stage_.in.is_signed, width),
        width - 2, width);
  }

  // A tree of additions, each a bit wider than what it adds: synthesis merges others into one of
  // many operands, without carry chains.
  std::string tree_text(int lane) const {
    std::vector<std::string> terms;
    for (int k = 0; k < before_; ++k) terms.push_back(fmt::format("p_{}_{}", lane, k));
    std::string out;
    int width = product_width();
    for (int level = 0; terms.size() > 1; ++level, ++width) {
      std::vector<std::string> next;
      for (size_t k = 0; k < terms.size(); k += 2) {
        const std::string name = fmt::format("t_{}_{}_{}", lane, level, k / 2);
        const auto wider = [&](const std::string& term) {
          return fmt::format("{{{0}[{1}], {0}}}", term, width - 1);
        };
        out += fmt::format("  wire [{}:0] {} = {};\n", width, name,
                           k + 1 == terms.size() ? wider(terms[k])
                                                 : wider(terms[k]) + " + " + wider(terms[k + 1]));
        next.push_back(name);
      }
      terms = std::move(next);
    }
    return out + fmt::format("  wire [{}:0] all_{} = {};\n", sum_width_ - 1, lane,
                             element_text(terms[0], 0, width, true, sum_width_));
  }

  std::string sums_text() const {
    std::string out;
    const bool tables = multipliers_ == Multipliers::luts;
    for (int k = 0; k < before_; ++k)
      out += tables ? multiples_text(k)
                    : fmt::format("  wire signed [{}:0] x_{} = {};\n", sum_width_ - 1, k,
                                  element_text("elements", k, stage_.in.width, stage_.in.is_signed,
                                               sum_width_));
    const std::string first =
        in_depth_ > 1 ? "beat == " + fmt::format("{}'d0", index_bits(in_depth_)) : std::string();
    for (int lane = 0; lane < after_; ++lane) {
      out += fmt::format("  logic signed [{}:0] sum_{};\n", sum_width_ - 1, lane);
      std::vector<std::string> terms;
      for (int k = 0; k < before_ && tables; ++k) out += product_text(lane, k);
      if (tables) {
        out += tree_text(lane);
        terms.push_back(fmt::format("all_{}", lane));
      }
      for (int k = 0; k < before_ && !tables; ++k) {
        out += fmt::format(
            "  wire signed [{0}:0] w_{1}_{2} = {3};\n"
            "  wire signed [{0}:0] p_{1}_{2} = x_{2} * w_{1}_{2};\n",
            sum_width_ - 1, lane, k,
            element_text("weights", lane * before_ + k, weight_width_, true, sum_width_));
        terms.push_back(fmt::format("p_{}_{}", lane, k));
      }
      const std::string bias = slice("biases", lane, sum_width_);
      out += fmt::format(
          "  wire signed [{0}:0] base_{1} = {2};\n"
          "  wire signed [{0}:0] next_{1} = base_{1} + {3};\n",
          sum_width_ - 1, lane,
          first.empty() ? bias : fmt::format("{} ? {} : sum_{}", first, bias, lane),
          join(terms, " + "));
    }
    return out;
  }

  // Every lane's function, or one of several by the group.
  std::string functions_text() const {
    std::string out;
    const int width = stage_.out.width;
    for (int lane = 0; lane < after_; ++lane) {
      std::vector<int> used;
      for (int group = 0; group < out_depth_; ++group)
        used.push_back(stage_.functions[index(group, lane)]);
      std::vector<int> distinct = used;
      std::sort(distinct.begin(), distinct.end());
      distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
      for (const int f : distinct)
        out += function_text(stage_, module_, f, lane, fmt::format("f_{}_{}", lane, f));
      if (distinct.size() == 1) {
        out += fmt::format("  wire {}y_{} = f_{}_{}_y;\n", vector_range(width), lane, lane,
                           distinct[0]);
        continue;
      }
      out += fmt::format("  logic {}y_{};\n  always_comb\n    case (done_group)\n",
                         vector_range(width), lane);
      for (int group = 0; group < out_depth_; ++group)
        out += fmt::format("      {}: y_{} = f_{}_{}_y;\n",
                           group + 1 == out_depth_
                               ? std::string("default")
                               : fmt::format("{}'d{}", index_bits(out_depth_), group),
                           lane, lane, used[static_cast<size_t>(group)]);
      out += "    endcase\n";
    }
    return out;
  }

  std::string registers_text() const {
    std::vector<std::string> results;
    for (int lane = after_; lane-- > 0;) results.push_back(fmt::format("y_{}", lane));
    std::string out =
        "\n  always_ff @(posedge clk)\n    if (rst) begin\n      done <= 1'b0;\n"
        "      data_out_0_valid <= 1'b0;\n";
    if (in_depth_ > 1) out += fmt::format("      beat <= {}'d0;\n", index_bits(in_depth_));
    if (out_depth_ > 1) {
      out += fmt::format(
          "      group <= {}'d0;\n      full <= 2'b00;\n      arriving <= 1'b0;\n"
          "      computing <= 1'b0;\n",
          index_bits(out_depth_));
      if (in_depth_ > 1) out += fmt::format("      arrived <= {}'d0;\n", index_bits(in_depth_));
    }
    out += fmt::format(
        "    end else begin\n      if (move) begin\n        data_out_0 <= {{{}}};\n"
        "        data_out_0_valid <= 1'b1;\n        done <= 1'b0;\n"
        "      end else if (data_out_0_ready) data_out_0_valid <= 1'b0;\n"
        "      if (step) begin\n",
        join(results, ", "));
    for (int lane = 0; lane < after_; ++lane)
      out += fmt::format("        sum_{0} <= next_{0};\n", lane);
    if (in_depth_ > 1)
      out += fmt::format("        beat <= last_beat ? {0}'d0 : beat + {0}'d1;\n",
                         index_bits(in_depth_));
    out += "        if (last_beat) begin\n          done <= 1'b1;\n";
    if (out_depth_ > 1)
      out += fmt::format(
          "{1}          group <= last_group ? {0}'d0 : group + {0}'d1;\n"
          "          if (last_group) begin\n            full[computing] <= 1'b0;\n"
          "            computing <= ~computing;\n          end\n",
          index_bits(out_depth_), functions_differ() ? "          done_group <= group;\n" : "");
    out += "        end\n      end\n";
    if (out_depth_ > 1) {
      out += fmt::format("      if (take) begin\n        rows[{}] <= data_in_0;\n",
                         place("arriving", "arrived"));
      if (in_depth_ > 1)
        out += fmt::format("        arrived <= last_arrival ? {0}'d0 : arrived + {0}'d1;\n",
                           index_bits(in_depth_));
      out +=
          "        if (last_arrival) begin\n          full[arriving] <= 1'b1;\n"
          "          arriving <= ~arriving;\n        end\n      end\n";
    }
    return out + "    end\n";
  }

  // Whether a lane has to know whose sum it holds.
  bool functions_differ() const {
    for (int lane = 0; lane < after_; ++lane)
      for (int group = 1; group < out_depth_; ++group)
        if (stage_.functions[index(group, lane)] != stage_.functions[index(0, lane)]) return true;
    return false;
  }

  // Where a beat of one of the two rows is kept.
  int row_places() const { return in_depth_ > 1 ? 2 << index_bits(in_depth_) : 2; }
  std::string place(const std::string& which, const std::string& beat) const {
    return in_depth_ > 1 ? fmt::format("{{{}, {}}}", which, beat) : which;
  }

  size_t index(int group, int lane) const { return static_cast<size_t>(group * after_ + lane); }

  const StreamStage& stage_;
  std::string module_;
  Multipliers multipliers_;
  int before_, after_, in_depth_, out_depth_, weight_width_, sum_width_;
};

}  // namespace

StageText vector_stage_text(const StreamStage& stage, const StagePlan& plan,
                            const std::string& module, Multipliers multipliers) {
  StageText text = function_modules(stage, module);
  text.files[fmt::format("rtl/{}.sv", module)] =
      VectorWriter(stage, plan, module, multipliers).text();
  return text;
}

}  // namespace mase
