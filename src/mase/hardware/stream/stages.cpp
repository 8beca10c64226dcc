// SPDX-License-Identifier: Apache-2.0
#include "mase/hardware/stream/stages.h"

#include <algorithm>
#include <numeric>

#include "mase/hardware/graph/interpreter.h"
#include "mase/hardware/graph/linear_form.h"
#include "mase/hardware/lower/lower_products.h"
#include "mase/hardware/stream/stage_functions.h"

namespace mase {
namespace {

using Sliding = IntegerGraph::Sliding;
using LinearLayer = IntegerGraph::LinearLayer;

ElementType element_of(const std::vector<IntegerRange>& ranges) {
  ElementType type;
  for (const IntegerRange& range : ranges) type.is_signed = type.is_signed || range.is_signed();
  for (const IntegerRange& range : ranges)
    type.width = std::max(type.width, range.width() + (type.is_signed && !range.is_signed()));
  return type;
}

int signed_width(int64_t low, int64_t high) {
  return IntegerRange{std::min<int64_t>(low, -1), std::max<int64_t>(high, 0)}.width();
}

size_t whole(int64_t number) { return static_cast<size_t>(number); }

// Calls visit(tap, position) for what the window of a result reads inside the plane.
template <class Visit>
void each_tap(const Sliding& s, int64_t result, const Visit& visit) {
  const int64_t top = result / s.result[1] * s.stride[0] - s.before[0],
                left = result % s.result[1] * s.stride[1] - s.before[1];
  for (int64_t ky = 0; ky < s.kernel[0]; ++ky)
    for (int64_t kx = 0; kx < s.kernel[1]; ++kx) {
      const int64_t row = top + ky * s.dilation[0], column = left + kx * s.dilation[1];
      if (row >= 0 && row < s.size[0] && column >= 0 && column < s.size[1])
        visit(ky * s.kernel[1] + kx, row * s.size[1] + column);
    }
}

// Finds the stages of a graph, one layer after another. `stream_` are the values that the next
// stage is given, in their order; -1 for those that nothing reads.
class StageFinder {
 public:
  explicit StageFinder(const IntegerGraph& graph) : graph_(graph) {}

  StreamNetwork run() {
    if (graph_.linear.empty()) refuse_stream(graph_, "it has no linear layers");
    begin();
    for (size_t k = 0; k < graph_.linear.size(); ++k) add_stage(k);
    std::vector<StreamStage>& stages = network_.stages;
    for (size_t k = stages.size(); k-- > 1;)
      if (stages[k].largest && stages[k - 1].windows) move_before_largest(stages[k - 1], stages[k]);
    for (size_t k = 1; k < stages.size(); ++k) {
      stages[k].in = stages[k - 1].out;
      if (stages[k].largest && does_nothing(stages[k].graphs)) stages[k].out = stages[k].in;
    }
    return std::move(network_);
  }

 private:
  const std::string& name_of(const LinearLayer& layer) const {
    return graph_.layers[whole(layer.layer)];
  }

  // The order of the network's inputs.
  void begin() {
    const LinearLayer& first = graph_.linear[0];
    stream_ = graph_.inputs;
    for (const IntegerId id : first.inputs)
      if (id >= 0 && std::find(stream_.begin(), stream_.end(), id) == stream_.end())
        refuse_stream(graph_,
                      fmt::format("{} does not read the inputs as they are", name_of(first)));
    if (first.sliding) {
      if (first.inputs.size() != stream_.size())
        refuse_stream(graph_, fmt::format("{} does not read all inputs", name_of(first)));
      stream_ = first.inputs;
    }
    network_.input_order = places_in(stream_, graph_.inputs);
  }

  // Which of `list` every value is; equal ones in their order.
  std::vector<int> places_in(const std::vector<IntegerId>& ids,
                             const std::vector<IntegerId>& list) const {
    std::multimap<IntegerId, int> places;
    for (size_t k = 0; k < list.size(); ++k) places.emplace(list[k], static_cast<int>(k));
    std::vector<int> result;
    for (const IntegerId id : ids) {
      const auto place = places.lower_bound(id);
      if (place == places.end() || place->first != id)
        refuse_stream(graph_, "its results are not those of its last layer");
      result.push_back(place->second);
      places.erase(place);
    }
    return result;
  }

  void add_stage(size_t k) {
    const LinearLayer& layer = graph_.linear[k];
    StreamStage stage;
    stage.name = name_of(layer);
    stage.windows = layer.sliding;
    stage.largest = layer.sliding && layer.sliding->largest;
    if (stage.windows && layer.inputs.size() != stream_.size())
      refuse_stream(graph_, fmt::format("{} reads {} values of {}", stage.name, layer.inputs.size(),
                                        stream_.size()));
    const LinearLayer* const next = k + 1 < graph_.linear.size() ? &graph_.linear[k + 1] : nullptr;
    std::map<IntegerId, size_t> sums;
    for (size_t o = 0; o < layer.outputs.size(); ++o)
      if (layer.outputs[o] >= 0) sums.try_emplace(layer.outputs[o], o);
    if (sums.empty()) refuse_stream(graph_, fmt::format("{} has constant outputs", stage.name));
    const std::vector<IntegerId> ends = stage.windows ? plane_ends(stage, layer, sums, next)
                                                      : vector_ends(stage, layer, sums, next);
    std::vector<IntegerRange> in_ranges, out_ranges;
    for (const IntegerId id : stream_) {
      if (id < 0) continue;
      in_ranges.push_back(graph_.at(id).range);
      stage.frac_in = std::max(stage.frac_in, graph_.at(id).frac);
    }
    for (const IntegerId end : ends) {
      if (end < 0) continue;
      out_ranges.push_back(graph_.at(end).range);
      stage.frac_out = std::max(stage.frac_out, graph_.at(end).frac);
    }
    // Functions may have wider results than single features.
    for (const IntegerGraph& function : stage.graphs)
      out_ranges.push_back(function.at(function.outputs[0]).range);
    stage.in = network_.stages.empty() ? element_of(in_ranges) : network_.stages.back().out;
    stage.out = element_of(out_ranges);
    network_.stages.push_back(std::move(stage));
    stream_ = ends;
    if (!next) network_.output_order = places_in(ends, graph_.outputs);
  }

  // A layer on a vector: what is read of it, in the reader's order.
  std::vector<IntegerId> vector_ends(StreamStage& stage, const LinearLayer& layer,
                                     const std::map<IntegerId, size_t>& sums,
                                     const LinearLayer* next) {
    std::vector<IntegerId> ends = next ? next->inputs : graph_.outputs;
    if (next && !next->sliding) ends.erase(std::remove(ends.begin(), ends.end(), -1), ends.end());
    if (ends.empty())
      refuse_stream(graph_, fmt::format("nothing that {} computes is read", stage.name));
    std::vector<StageFunction> wanted;
    LocalForms forms(graph_, stream_);
    stage.weights.assign(stream_.size(), std::vector<int64_t>(ends.size(), 0));
    for (size_t o = 0; o < ends.size(); ++o) {
      // What nothing reads, and what depends on nothing, is as well a function of any sum.
      const IntegerId any = sums.begin()->first;
      Between path = between(graph_, sums, ends[o] < 0 ? any : ends[o]);
      const IntegerId sum = layer.outputs[path.sum.value_or(sums.begin()->second)];
      wanted.push_back({sum, std::move(path), graph_.at(sum).range});
      const std::optional<LocalForm> form = forms.of(sum);
      if (!form) refuse_stream(graph_, fmt::format("{} is no sum of its inputs", stage.name));
      for (const auto& [i, factor] : form->terms) stage.weights[i][o] = factor;
      stage.constants.push_back(form->constant);
    }
    add_functions(stage, graph_, wanted);
    return ends;
  }

  // A layer over windows: all channels at every position, whether they are read there or not.
  std::vector<IntegerId> plane_ends(StreamStage& stage, const LinearLayer& layer,
                                    const std::map<IntegerId, size_t>& sums,
                                    const LinearLayer* next) {
    const Sliding& s = *stage.windows;
    const size_t positions = whole(s.result[0] * s.result[1]);
    MASE_CHECK(layer.outputs.size() == positions * whole(s.results), "{} sums",
               layer.outputs.size());
    // Of every channel that is read, and of every position: the value.
    std::vector<std::vector<IntegerId>> channels;
    std::vector<IntegerId> read;
    if (next && next->sliding)
      read = next->inputs;
    else if (!next && graph_.outputs.size() % positions == 0)
      read = lies_by_position(sums, graph_.outputs, whole(s.results), positions)
                 ? graph_.outputs
                 : by_position(graph_.outputs,
                               static_cast<int64_t>(graph_.outputs.size() / positions));
    if (!read.empty()) {
      if (read.size() % positions != 0)
        refuse_stream(graph_, fmt::format("what {} computes at {} positions is read as {} values",
                                          stage.name, positions, read.size()));
      channels.assign(read.size() / positions, std::vector<IntegerId>(positions, -1));
      for (size_t k = 0; k < read.size(); ++k)
        channels[k % channels.size()][k / channels.size()] = read[k];
    } else {
      channels = channels_read(stage, sums, next ? next->inputs : graph_.outputs, positions);
    }
    std::vector<StageFunction> wanted;
    std::vector<size_t> used;  // of the sums' channels
    for (const std::vector<IntegerId>& values : channels) {
      std::vector<StageFunction> all;
      std::optional<size_t> channel;
      for (size_t p = 0; p < positions; ++p) {
        if (values[p] < 0) continue;
        Between path = between(graph_, sums, values[p]);
        if (!path.sum) continue;  // depends on nothing
        const size_t own = *path.sum % whole(s.results);
        if (*path.sum / whole(s.results) != p || (channel && *channel != own))
          refuse_stream(graph_,
                        fmt::format("what {} computes is moved before it is read", stage.name));
        channel = own;
        const IntegerId sum = layer.outputs[*path.sum];
        all.push_back({sum, std::move(path), graph_.at(sum).range});
      }
      if (!channel) {
        all = constant_channel(stage, layer, sums, values);
        channel = sums.begin()->second % whole(s.results);
      }
      wanted.push_back(common_function(graph_, std::move(all), stage.name));
      used.push_back(*channel);
    }
    add_functions(stage, graph_, wanted);
    if (!stage.largest) window_weights(stage, layer, used);
    std::vector<IntegerId> ends;
    for (size_t p = 0; p < positions; ++p)
      for (const std::vector<IntegerId>& values : channels) ends.push_back(values[p]);
    return ends;
  }

  // Whether values come position by position, as those of a sequence do.
  bool lies_by_position(const std::map<IntegerId, size_t>& sums,
                        const std::vector<IntegerId>& values, size_t results, size_t positions) {
    const size_t channels = values.size() / positions;
    for (size_t k = 0; k < values.size(); ++k)
      if (const std::optional<size_t> sum = between(graph_, sums, values[k]).sum;
          sum && *sum / results != k / channels)
        return false;
    return true;
  }

  // Values that depend on no sum: the same number everywhere.
  std::vector<StageFunction> constant_channel(const StreamStage& stage, const LinearLayer& layer,
                                              const std::map<IntegerId, size_t>& sums,
                                              const std::vector<IntegerId>& values) {
    const IntegerId sum = layer.outputs[sums.begin()->second];
    const auto read =
        std::find_if(values.begin(), values.end(), [](IntegerId id) { return id >= 0; });
    if (read == values.end()) return {{sum, between(graph_, sums, sum), graph_.at(sum).range}};
    for (const IntegerId id : values)
      if (id >= 0 && (graph_.at(id).range != graph_.at(*read).range))
        refuse_stream(graph_,
                      fmt::format("{} gives other constants at other positions", stage.name));
    return {{sum, between(graph_, sums, *read), graph_.at(sum).range}};
  }

  // A vector made of a plane (flatten): the channels that it reads, whatever its order.
  std::vector<std::vector<IntegerId>> channels_read(const StreamStage& stage,
                                                    const std::map<IntegerId, size_t>& sums,
                                                    const std::vector<IntegerId>& read,
                                                    size_t positions) {
    std::map<size_t, std::vector<IntegerId>> found;
    for (const IntegerId id : read) {
      if (id < 0) continue;
      const Between path = between(graph_, sums, id);
      if (!path.sum) continue;  // a constant joins the sums that read it
      const size_t results = whole(stage.windows->results);
      auto [entry, fresh] =
          found.try_emplace(*path.sum % results, std::vector<IntegerId>(positions, -1));
      IntegerId& value = entry->second[*path.sum / results];
      if (value >= 0 && value != id)
        refuse_stream(graph_, fmt::format("a sum of {} is rounded in two ways", stage.name));
      value = id;
    }
    std::vector<std::vector<IntegerId>> channels;
    for (auto& entry : found) channels.push_back(std::move(entry.second));
    if (channels.empty())
      refuse_stream(graph_, fmt::format("nothing that {} computes is read", stage.name));
    return channels;
  }

  // The same weights in the window of every position.
  void window_weights(StreamStage& stage, const LinearLayer& layer,
                      const std::vector<size_t>& used) {
    const Sliding& s = *stage.windows;
    const size_t channels = whole(s.channels), taps = whole(s.kernel[0] * s.kernel[1]);
    LocalForms forms(graph_, stream_);
    stage.weights.assign(taps * channels, std::vector<int64_t>(used.size(), 0));
    stage.constants.assign(used.size(), 0);
    const auto differs = [&] {
      refuse_stream(graph_, fmt::format("{} has other weights at other positions", stage.name));
    };
    std::vector<int64_t> found(stream_.size());
    for (size_t o = 0; o < used.size(); ++o) {
      std::vector<char> known(taps * channels, 0);
      bool constant_known = false;
      for (int64_t at = 0; at < s.result[0] * s.result[1]; ++at) {
        const IntegerId sum = layer.outputs[whole(at * s.results) + used[o]];
        if (sum < 0) continue;
        const std::optional<LocalForm> form = forms.of(sum);
        if (!form) refuse_stream(graph_, fmt::format("{} is no sum of its inputs", stage.name));
        if (std::exchange(constant_known, true) && stage.constants[o] != form->constant) differs();
        stage.constants[o] = form->constant;
        for (const auto& [place, factor] : form->terms) found[place] = factor;
        size_t read = 0;
        each_tap(s, at, [&](int64_t tap, int64_t position) {
          for (size_t c = 0; c < channels; ++c) {
            const size_t place = whole(position) * channels + c, i = whole(tap) * channels + c;
            if (stream_[place] < 0) continue;
            // A value that is always zero has no term.
            const IntegerRange& range = graph_.at(stream_[place]).range;
            if (range.low == 0 && range.high == 0) continue;
            int64_t& weight = stage.weights[i][o];
            if (std::exchange(known[i], 1) && weight != found[place]) differs();
            weight = found[place];
            read += weight != 0;
          }
        });
        if (read != form->terms.size())
          refuse_stream(graph_, fmt::format("{} reads beyond its windows", stage.name));
        for (const auto& entry : form->terms) found[entry.first] = 0;
      }
    }
  }

  const IntegerGraph& graph_;
  std::vector<IntegerId> stream_;
  StreamNetwork network_;
};

// Rows of elements through one stage; every element's codes for all rows stand side by side.
std::vector<int64_t> run_stage(const StreamStage& stage, const std::vector<int64_t>& codes,
                               size_t rows) {
  const size_t results = whole(stage.results()), outputs = whole(stage.outputs()),
               channels = whole(stage.channels());
  const std::vector<IntegerProgram> functions(stage.graphs.begin(), stage.graphs.end());
  std::vector<int64_t> values, sums(rows);
  values.reserve(results * outputs * rows);
  // Of each output: what of a vector or window counts.
  std::vector<std::vector<std::pair<size_t, int64_t>>> terms(outputs);
  for (size_t o = 0; o < outputs; ++o)
    for (size_t i = 0; i < stage.weights.size(); ++i)
      if (const int64_t weight = stage.weights[i][o]; weight != 0) terms[o].emplace_back(i, weight);
  // Of every element of the vector or window: its codes; null: padding.
  std::vector<const int64_t*> from(whole(stage.inputs()));
  for (size_t at = 0; at < results; ++at) {
    std::fill(from.begin(), from.end(), nullptr);
    if (stage.windows)
      each_tap(*stage.windows, static_cast<int64_t>(at), [&](int64_t tap, int64_t position) {
        for (size_t c = 0; c < channels; ++c)
          from[whole(tap) * channels + c] = codes.data() + (whole(position) * channels + c) * rows;
      });
    else
      for (size_t i = 0; i < from.size(); ++i) from[i] = codes.data() + i * rows;
    for (size_t o = 0; o < outputs; ++o) {
      if (stage.largest) {
        std::fill(sums.begin(), sums.end(), stage.in.range().low);
        for (size_t i = o; i < from.size(); i += channels)
          for (size_t row = 0; from[i] && row < rows; ++row)
            sums[row] = std::max(sums[row], from[i][row]);
      } else {
        std::fill(sums.begin(), sums.end(), stage.constants[o]);
        for (const auto& [i, weight] : terms[o])
          for (size_t row = 0; from[i] && row < rows; ++row) sums[row] += weight * from[i][row];
      }
      const size_t f = whole(stage.functions[o]);
      // Positions that nothing reads may lie outside of what the function is for.
      const IntegerGraph& function = stage.graphs[f];
      const IntegerRange& range = function.at(function.inputs[0]).range;
      if (stage.windows)
        for (int64_t& sum : sums) sum = std::clamp(sum, range.low, range.high);
      const std::vector<int64_t> own = functions[f].run(sums);
      values.insert(values.end(), own.begin(), own.end());
    }
  }
  return values;
}

}  // namespace

IntegerRange ElementType::range() const {
  return is_signed ? IntegerRange{-(int64_t{1} << (width - 1)), (int64_t{1} << (width - 1)) - 1}
                   : IntegerRange{0, (int64_t{1} << width) - 1};
}

int StreamStage::inputs() const {
  return windows ? static_cast<int>(windows->kernel[0] * windows->kernel[1] * windows->channels)
                 : static_cast<int>(weights.size());
}

int StreamStage::channels() const {
  return windows ? static_cast<int>(windows->channels) : inputs();
}
int64_t StreamStage::positions() const { return windows ? windows->size[0] * windows->size[1] : 1; }
int64_t StreamStage::results() const {
  return windows ? windows->result[0] * windows->result[1] : 1;
}

int StreamStage::weight_width() const {
  int64_t low = 0, high = 0;
  for (const auto& row : weights)
    for (const int64_t weight : row) {
      low = std::min(low, weight);
      high = std::max(high, weight);
    }
  return signed_width(low, high);
}

int StreamStage::sum_width() const {
  if (largest) return in.width;
  const int64_t magnitude = int64_t{1} << (in.width - (in.is_signed ? 1 : 0));
  int64_t most = 1;
  for (size_t o = 0; o < constants.size(); ++o) {
    int64_t sum = std::abs(constants[o]);
    for (const auto& row : weights)
      sum = checked_add(sum, checked_multiply(std::abs(row[o]), magnitude));
    most = std::max(most, sum);
  }
  return signed_width(-most, most);
}

StreamNetwork stream_network(const IntegerGraph& graph) { return StageFinder(graph).run(); }

std::vector<int64_t> run_stages(const StreamNetwork& network, const std::vector<int64_t>& rows) {
  const size_t in = network.input_order.size(), out = network.output_order.size();
  const size_t count = rows.size() / in;
  constexpr size_t block = 256;  // rows at a time
  std::vector<int64_t> results(count * out);
  for (size_t first = 0; first < count; first += block) {
    const size_t own = std::min(block, count - first);
    std::vector<int64_t> codes(own * in);
    for (size_t k = 0; k < in; ++k)
      for (size_t row = 0; row < own; ++row)
        codes[k * own + row] = rows[(first + row) * in + whole(network.input_order[k])];
    for (const StreamStage& stage : network.stages) codes = run_stage(stage, codes, own);
    for (size_t k = 0; k < out; ++k)
      for (size_t row = 0; row < own; ++row)
        results[(first + row) * out + whole(network.output_order[k])] = codes[k * own + row];
  }
  return results;
}

}  // namespace mase
