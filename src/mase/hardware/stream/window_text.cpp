// SPDX-License-Identifier: Apache-2.0
// A stage over windows. A plane's positions come in raster order; the rows above the last one are
// in a memory, the columns beside it in registers, so that each step has one window complete. What
// stands beside the plane (padding) is stepped over as if it came. A window waits in these
// registers until its sums are made.
#include <algorithm>

#include "mase/hardware/emit/verilog_text.h"
#include "mase/hardware/stream/stage_text.h"

namespace mase {
namespace {

using std::string;

class WindowWriter {
 public:
  WindowWriter(const StreamStage& stage, const StagePlan& plan, string module)
      : stage_(stage),
        s_(*stage.windows),
        scan_(s_),
        plan_(plan),
        module_(std::move(module)),
        channels_(static_cast<int>(s_.channels)),
        word_(channels_ * stage.in.width),
        lines_(static_cast<int>((s_.kernel[0] - 1) * s_.dilation[0])),
        digits_(plan.products ? plan.products->digits : 1),
        sum_width_(stage.sum_width()) {}

  string text() const {
    string out = stage_head(remarks(), module_, word_, stage_.outputs() * stage_.out.width);
    out += scan_text() + window_text();
    out += stage_.largest ? largest_text() : sums_text();
    for (int o = 0; o < stage_.outputs(); ++o)
      out += function_text(stage_, module_, stage_.functions[static_cast<size_t>(o)], o,
                           fmt::format("f_{}", o));
    return out + registers_text() + "endmodule\n\n`default_nettype wire\n";
  }

 private:
  string remarks() const {
    const auto type = [](const ElementType& element, int frac) {
      return fmt::format("{} bits ({}, {} after the point)", element.width,
                         element.is_signed ? "signed" : "from zero up", frac);
    };
    return fmt::format(
        "// {}: {} at {} by {} positions, from windows of {} by {} over {} by {} positions of {}\n"
        "// channels: one position each step, {} for a plane. Inputs of {}, results of {}.\n",
        stage_.name, stage_.largest ? "the largest" : fmt::format("{} sums", stage_.outputs()),
        s_.result[0], s_.result[1], s_.kernel[0], s_.kernel[1], s_.size[0], s_.size[1], s_.channels,
        stage_.largest || digits_ == 1
            ? fmt::format("{} clock cycles", scan_.positions())
            : fmt::format("{} clock cycles for a window, {} clock cycles", digits_, plan_.cycles),
        type(stage_.in, stage_.frac_in), type(stage_.out, stage_.frac_out));
  }

  // Whether `counter` is within, by what can be false at all.
  static string within(const string& counter, int bits, int64_t low, int64_t high, int64_t count) {
    std::vector<string> terms;
    if (low == high && count > 1) return fmt::format("{} == {}'d{}", counter, bits, low);
    if (low > 0) terms.push_back(fmt::format("{} >= {}'d{}", counter, bits, low));
    if (high < count - 1) terms.push_back(fmt::format("{} <= {}'d{}", counter, bits, high));
    return join(terms, " & ");
  }
  static string all_of(std::vector<string> terms) {
    terms.erase(std::remove(terms.begin(), terms.end(), ""), terms.end());
    for (string& term : terms) term = fmt::format("({})", term);
    return terms.empty() ? "1'b1" : join(terms, " & ");
  }

  bool padded() const { return scan_.rows > s_.size[0] || scan_.columns > s_.size[1]; }
  int row_bits() const { return index_bits(scan_.rows); }
  int column_bits() const { return index_bits(scan_.columns); }

  string scan_text() const {
    const string in_plane =
        all_of({within("row", row_bits(), s_.before[0], s_.before[0] + s_.size[0] - 1, scan_.rows),
                within("column", column_bits(), s_.before[1], s_.before[1] + s_.size[1] - 1,
                       scan_.columns)});
    std::vector<string> hit = {
        within("row", row_bits(), scan_.first_row, scan_.last_row, scan_.rows),
        within("column", column_bits(), scan_.first_column, scan_.last_column, scan_.columns)};
    if (s_.stride[0] > 1) hit.push_back(fmt::format("row_phase == {}'d0", phase_bits(0)));
    if (s_.stride[1] > 1) hit.push_back(fmt::format("column_phase == {}'d0", phase_bits(1)));
    string out = fmt::format(
        "  // Where the step is, padding included, and whether a window ends there.\n"
        "  logic [{}:0] row;\n  logic [{}:0] column;\n",
        row_bits() - 1, column_bits() - 1);
    for (size_t i = 0; i < 2; ++i)
      if (s_.stride[i] > 1)
        out +=
            fmt::format("  logic [{}:0] {}_phase;\n", phase_bits(i) - 1, i == 0 ? "row" : "column");
    out += fmt::format(
        "  wire last_column = column == {}'d{};\n  wire in_plane = {};\n  wire hit = {};\n"
        "  wire have = data_in_0_valid | ~in_plane;\n"
        "  // A finished sum waits here until the output register is free.\n"
        "  logic done;\n"
        "  wire move = done & (~data_out_0_valid | data_out_0_ready);\n"
        "  wire step = have & hit & (~done | move);\n",
        column_bits(), scan_.columns - 1, in_plane, all_of(hit));
    if (digits_ > 1)
      out += fmt::format("  logic [{}:0] digit;\n  wire last_digit = digit == {}'d{};\n",
                         index_bits(digits_) - 1, index_bits(digits_), digits_ - 1);
    else
      out += "  wire last_digit = 1'b1;\n";
    out +=
        "  wire advance = have & (~hit | (step & last_digit));\n"
        "  assign data_in_0_ready = in_plane & advance;\n";
    // Padding is a zero, or what is never the largest.
    const string beside =
        stage_.largest && stage_.in.is_signed
            ? fmt::format("{{{}{{1'b1, {{{}{{1'b0}}}}}}}}", channels_, stage_.in.width - 1)
            : fmt::format("{{{}{{1'b0}}}}", word_);
    out += fmt::format("  wire {}here = {};\n", sliced_range(word_),
                       padded() ? fmt::format("in_plane ? data_in_0 : {}", beside) : "data_in_0");
    return out;
  }
  int phase_bits(size_t i) const { return index_bits(s_.stride[i]); }

  string part(const string& name, int64_t index) const {
    return fmt::format("{}[{}:{}]", name, (index + 1) * word_ - 1, index * word_);
  }
  // This column's word of a row of the window.
  string column_word(int64_t tap_row) const {
    const int64_t up = (s_.kernel[0] - 1 - tap_row) * s_.dilation[0];
    return up == 0 ? "here" : part("above", up - 1);
  }

  string window_text() const {
    string out, clocked;
    if (lines_ > 0) {
      const int bits = lines_ * word_;
      const string pushed =
          lines_ > 1 ? fmt::format("{{above[{}:0], here}}", (lines_ - 1) * word_ - 1) : "here";
      out += fmt::format(
          "  // The rows above at this column, the nearest one lowest.\n  logic {}above;\n",
          sliced_range(bits));
      if (scan_.columns > 1) {
        out += fmt::format(
            "  logic {}lines [0:{}];\n"
            "  wire [{}:0] next_column = last_column ? {}'d0 : column + {}'d1;\n",
            sliced_range(bits), scan_.columns - 1, column_bits() - 1, column_bits(), column_bits());
        clocked +=
            fmt::format("      lines[column] <= {};\n      above <= lines[next_column];\n", pushed);
      } else {
        clocked += fmt::format("      above <= {};\n", pushed);
      }
    }
    const int64_t kept = (s_.kernel[1] - 1) * s_.dilation[1];
    std::vector<string> taps;
    for (int64_t y = 0; y < s_.kernel[0]; ++y) {
      if (kept > 0) {
        out += fmt::format("  logic {}left_{};\n", sliced_range(static_cast<int>(kept) * word_), y);
        clocked += fmt::format("      left_{0} <= {1};\n", y,
                               kept > 1 ? fmt::format("{{left_{}[{}:0], {}}}", y,
                                                      (kept - 1) * word_ - 1, column_word(y))
                                        : column_word(y));
      }
      for (int64_t x = 0; x < s_.kernel[1]; ++x) {
        const int64_t back = (s_.kernel[1] - 1 - x) * s_.dilation[1];
        taps.push_back(back == 0 ? column_word(y) : part(fmt::format("left_{}", y), back - 1));
      }
    }
    std::reverse(taps.begin(), taps.end());
    if (!clocked.empty())
      out += "  always_ff @(posedge clk)\n    if (advance) begin\n" + clocked + "    end\n";
    return out + fmt::format(
                     "  // Its taps row by row, the channels of each.\n  wire {}window = {{{}}};\n",
                     sliced_range(stage_.inputs() * stage_.in.width), join(taps, ", "));
  }

  // A tree of comparisons for every channel.
  string largest_text() const {
    const int width = stage_.in.width;
    string out;
    for (int c = 0; c < channels_; ++c) {
      std::vector<string> values;
      for (int64_t tap = 0; tap < s_.kernel[0] * s_.kernel[1]; ++tap) {
        values.push_back(fmt::format("v_{}_{}", c, tap));
        out += fmt::format(
            "  wire {}{} = {};\n", sliced_range(width), values.back(),
            element_text("window", static_cast<int>(tap) * channels_ + c, width, false, width));
      }
      const auto ordered = [&](const string& value) {
        if (!stage_.in.is_signed) return value;
        return width == 1 ? "~" + value
                          : fmt::format("{{~{0}[{1}], {0}[{2}:0]}}", value, width - 1, width - 2);
      };
      for (int level = 0; values.size() > 1; ++level) {
        std::vector<string> next;
        for (size_t k = 0; k + 1 < values.size(); k += 2) {
          next.push_back(fmt::format("m_{}_{}_{}", c, level, k / 2));
          out += fmt::format("  wire {}{} = {} < {} ? {} : {};\n", sliced_range(width), next.back(),
                             ordered(values[k]), ordered(values[k + 1]), values[k + 1], values[k]);
        }
        if (values.size() % 2 == 1) next.push_back(values.back());
        values = std::move(next);
      }
      out += fmt::format("  logic {0}sum_{1};\n  wire {0}next_{1} = {2};\n", sliced_range(width), c,
                         values[0]);
    }
    return out;
  }

  string sums_text() const {
    const WindowProducts& products = *plan_.products;
    const IntegerGraph& graph = products.graph;
    string out, elements = "window";
    if (digits_ > 1) {
      elements = "bits";
      out += fmt::format(
          "  // The same digit of every element{}, the highest one first.\n  logic {}bits;\n"
          "  always_comb\n    case (digit)\n",
          products.offset ? " plus half its range" : "",
          sliced_range(stage_.inputs() * products.digit_bits));
      for (int digit = 0; digit < digits_; ++digit)
        out += fmt::format("      {}: bits = {{{}}};\n",
                           digit + 1 == digits_ ? string("default")
                                                : fmt::format("{}'d{}", index_bits(digits_), digit),
                           join(digit_parts(digits_ - 1 - digit), ", "));
      out += "    endcase\n";
    }
    int bits = 0;
    for (const IntegerId id : graph.outputs) bits += std::max(1, graph.at(id).range.width());
    out += fmt::format("  wire {}products;\n  {}_sums sums (.in_data({}), .out_data(products));\n",
                       sliced_range(bits), module_, elements);
    int at = 0;
    for (int o = 0; o < stage_.outputs(); ++o) {
      const IntegerNode& node = graph.at(graph.outputs[static_cast<size_t>(o)]);
      const int own = std::max(1, node.range.width());
      const string name = fmt::format("s_{}", o);
      out += fmt::format("  wire {}{} = products[{}:{}];\n", vector_range(own), name, at + own - 1,
                         at);
      at += own;
      const string wide = extended({name, node.range}, 0, 0, sum_width_);
      out += fmt::format("  logic [{0}:0] sum_{1};\n", sum_width_ - 1, o);
      if (digits_ > 1) {
        out += base_text(o);
        out += fmt::format("  wire [{0}:0] next_{1} = base_{1} + {2};\n", sum_width_ - 1, o, wide);
      } else {
        out += fmt::format("  wire [{0}:0] next_{1} = {2};\n", sum_width_ - 1, o, wide);
      }
    }
    return out;
  }

  // What a sum has so far, up by a digit, whose bits are the constant's.
  string base_text(int o) const {
    const int d = plan_.products->digit_bits;
    const int64_t constant = plan_.products->constants[static_cast<size_t>(o)];
    string out = fmt::format("  logic [{}:0] base_{};\n  always_comb\n    case (digit)\n",
                             sum_width_ - 1, o);
    for (int digit = 0; digit < digits_; ++digit) {
      const int drop = d * (digits_ - 1 - digit);
      const string label = digit + 1 == digits_ ? string("default")
                                                : fmt::format("{}'d{}", index_bits(digits_), digit);
      const int64_t high = drop >= 63 ? (constant < 0 ? -1 : 0) : constant >> drop;
      out += digit == 0 ? fmt::format("      {}: base_{} = {};\n", label, o,
                                      literal_bits(high, sum_width_))
                        : fmt::format("      {0}: base_{1} = {{sum_{1}[{2}:0], {3}}};\n", label, o,
                                      sum_width_ - d - 1, literal_bits(high, d));
    }
    return out + "    endcase\n";
  }

  // Of every element its digit number `index` from the lowest, the last element first.
  std::vector<string> digit_parts(int index) const {
    const int d = plan_.products->digit_bits, width = stage_.in.width;
    const int low = index * d, high = std::min(low + d, width) - 1;
    std::vector<string> parts;
    for (int i = stage_.inputs(); i-- > 0;) {
      if (low + d > width) parts.push_back(literal_bits(0, low + d - width));
      const int from = i * width + low, to = i * width + high;
      if (!plan_.products->offset || high < width - 1) {
        parts.push_back(fmt::format("window[{}:{}]", to, from));
        continue;
      }
      parts.push_back(fmt::format("~window[{}]", to));
      if (to > from) parts.push_back(fmt::format("window[{}:{}]", to - 1, from));
    }
    return parts;
  }

  string registers_text() const {
    const auto counted = [](const string& name, int bits, const string& last) {
      return fmt::format("{0} <= {2} ? {1}'d0 : {0} + {1}'d1;\n", name, bits, last);
    };
    const auto phase = [&](size_t i, int64_t first, const string& name, const string& last) {
      // Zero where the first window ends.
      const int64_t stride = s_.stride[i], start = (stride - first % stride) % stride;
      if (stride == 1) return string();
      return fmt::format(
          "{0}_phase <= {1} ? {2}'d{3} : {0}_phase == {2}'d{4} ? {2}'d0 : "
          "{0}_phase + {2}'d1;\n",
          name, last, phase_bits(i), start, stride - 1);
    };
    const auto start = [&](size_t i, int64_t first) {
      return (s_.stride[i] - first % s_.stride[i]) % s_.stride[i];
    };
    const string last_row = fmt::format("row == {}'d{}", row_bits(), scan_.rows - 1);
    std::vector<string> results;
    for (int o = stage_.outputs(); o-- > 0;) results.push_back(fmt::format("f_{}_y", o));
    string out = fmt::format(
        "\n  always_ff @(posedge clk)\n    if (rst) begin\n      done <= 1'b0;\n"
        "      data_out_0_valid <= 1'b0;\n      row <= {}'d0;\n      column <= {}'d0;\n",
        row_bits(), column_bits());
    if (s_.stride[0] > 1)
      out += fmt::format("      row_phase <= {}'d{};\n", phase_bits(0), start(0, scan_.first_row));
    if (s_.stride[1] > 1)
      out += fmt::format("      column_phase <= {}'d{};\n", phase_bits(1),
                         start(1, scan_.first_column));
    if (digits_ > 1) out += fmt::format("      digit <= {}'d0;\n", index_bits(digits_));
    out += fmt::format(
        "    end else begin\n      if (move) begin\n        data_out_0 <= {{{}}};\n"
        "        data_out_0_valid <= 1'b1;\n        done <= 1'b0;\n"
        "      end else if (data_out_0_ready) data_out_0_valid <= 1'b0;\n"
        "      if (step) begin\n",
        join(results, ", "));
    for (int o = 0; o < stage_.outputs(); ++o)
      out += fmt::format("        sum_{0} <= next_{0};\n", o);
    if (digits_ > 1) out += "        " + counted("digit", index_bits(digits_), "last_digit");
    out += "        if (last_digit) done <= 1'b1;\n      end\n      if (advance) begin\n        " +
           counted("column", column_bits(), "last_column");
    if (const string text = phase(1, scan_.first_column, "column", "last_column"); !text.empty())
      out += "        " + text;
    out += "        if (last_column) begin\n          " + counted("row", row_bits(), last_row);
    if (const string text = phase(0, scan_.first_row, "row", last_row); !text.empty())
      out += "          " + text;
    return out + "        end\n      end\n    end\n";
  }

  const StreamStage& stage_;
  const IntegerGraph::Sliding& s_;
  WindowScan scan_;
  const StagePlan& plan_;
  string module_;
  int channels_, word_, lines_, digits_, sum_width_;
};

}  // namespace

StageText window_stage_text(const StreamStage& stage, const StagePlan& plan, const string& module) {
  StageText text = function_modules(stage, module);
  if (plan.products) text.add(plan.products->graph, module + "_sums");
  text.files[fmt::format("rtl/{}.sv", module)] = WindowWriter(stage, plan, module).text();
  return text;
}

}  // namespace mase
