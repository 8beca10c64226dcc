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

// What a layer reads of one source: values position by position, the channels of each.
struct ReadValues {
  std::vector<IntegerId> values;  // -1 for those that nothing reads
  StreamSource source;
};

// Finds the stages of a graph in the order of its layers. `stream_` are the values that the stage
// at hand is given, in their order; -1 for those that nothing reads.
class StageFinder {
 public:
  explicit StageFinder(const IntegerGraph& graph) : graph_(graph) {}

  StreamNetwork run() {
    if (graph_.linear.empty()) refuse_stream(graph_, "it has no linear layers");
    find_sources();
    begin();
    for (size_t k = 0; k < graph_.linear.size(); ++k) add_stage(k);
    std::vector<StreamStage>& stages = network_.stages;
    for (size_t k = stages.size(); k-- > 1;) {
      const int before = stages[k].sources[0].stage;
      if (stages[k].largest && before >= 0 && stages[whole(before)].windows &&
          readers_of(stages, before).size() == 1)
        move_before_largest(stages[whole(before)], stages[k]);
    }
    const ElementType inputs = stages[0].in;
    for (StreamStage& stage : stages) {
      stage.in = given_type(stage, stages, inputs);
      if (stage.largest && does_nothing(stage.graphs)) stage.out = stage.in;
    }
    return std::move(network_);
  }

 private:
  // One list of operands of a layer, or the network's outputs.
  struct Reader {
    size_t layer = 0, operand = 0;
    const std::vector<IntegerId>* values = nullptr;
    bool slides = false, adds = false, ends = false;
  };

  const std::string& name_of(const LinearLayer& layer) const {
    return graph_.layers[whole(layer.layer)];
  }

  // Of both sources what holds all.
  static ElementType given_type(const StreamStage& stage, const std::vector<StreamStage>& stages,
                                const ElementType& inputs) {
    std::vector<IntegerRange> ranges;
    for (const StreamSource& source : stage.sources)
      ranges.push_back((source.stage < 0 ? inputs : stages[whole(source.stage)].out).range());
    return element_of(ranges);
  }

  // Which stage's sums, or the inputs (-1), values are made of; the first one says it.
  int source_of(const std::vector<IntegerId>& values, const std::string& reader) const {
    for (const IntegerId value : values) {
      std::vector<IntegerId> open = {value};
      std::map<IntegerId, bool> seen;
      while (!open.empty()) {
        const IntegerId at = open.back();
        open.pop_back();
        if (at < 0 || !seen.emplace(at, true).second) continue;
        if (const auto owner = owners_.find(at); owner != owners_.end()) return owner->second;
        if (!graph_.at(at).op->evaluate) return -1;
        for (const IntegerId input : graph_.at(at).inputs) open.push_back(input);
      }
    }
    refuse_stream(graph_, fmt::format("what {} reads is constant", reader));
  }

  // Who reads the inputs (at 0) and every stage (behind it).
  void find_sources() {
    const size_t count = graph_.linear.size();
    readers_.resize(count + 1);
    for (size_t k = 0; k < count; ++k) {
      const LinearLayer& layer = graph_.linear[k];
      const bool adds = !layer.others.empty();
      size_t operand = 0;
      for (const std::vector<IntegerId>* list : {&layer.inputs, &layer.others})
        if (!list->empty())
          readers_[whole(source_of(*list, name_of(layer)) + 1)].push_back(
              {k, operand++, list, layer.sliding.has_value(), adds, false});
      reads_.emplace_back(operand);
      for (const IntegerId sum : layer.outputs)
        if (sum >= 0) owners_.emplace(sum, static_cast<int>(k));
    }
    const int last = source_of(graph_.outputs, "the output");
    if (last != static_cast<int>(count) - 1)
      refuse_stream(graph_, "its results are not those of its last layer");
    readers_.back().push_back({count, 0, &graph_.outputs, false, false, true});
    for (size_t k = 0; k + 1 < readers_.size(); ++k)
      if (readers_[k + 1].empty())
        refuse_stream(graph_,
                      fmt::format("nothing reads what {} computes", name_of(graph_.linear[k])));
  }

  // The order of the network's inputs: that of a layer with windows, if one reads them.
  void begin() {
    std::vector<IntegerId> order = graph_.inputs;
    network_.channels = static_cast<int>(order.size());
    for (const Reader& reader : readers_[0])
      if (reader.slides) {
        order = *reader.values;
        network_.channels = static_cast<int>(graph_.linear[reader.layer].sliding->channels);
      }
    network_.input_order = places_in(order, graph_.inputs);
    network_.whole_inputs = readers_[0].size() > 1 || readers_[0][0].adds;
    for (const Reader& reader : readers_[0]) {
      const std::string& name = name_of(graph_.linear[reader.layer]);
      if (reader.slides && *reader.values != order)
        refuse_stream(graph_, fmt::format("{} does not read all inputs in their order", name));
      for (const IntegerId id : *reader.values)
        if (id >= 0 && std::find(order.begin(), order.end(), id) == order.end())
          refuse_stream(graph_, fmt::format("{} does not read the inputs as they are", name));
      reads_[reader.layer][reader.operand] = {order, {-1, 0, network_.channels}};
    }
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

  // A sum of two values as windows of one position over the channels of both.
  LinearLayer summed(const LinearLayer& layer, const std::vector<ReadValues>& read) const {
    const size_t channels = whole(read[0].source.count), all = read[0].values.size();
    if (read[1].values.size() != all || whole(read[1].source.count) != channels)
      refuse_stream(graph_, fmt::format("{} adds planes of different sizes", name_of(layer)));
    LinearLayer result = layer;
    result.others.clear();
    result.inputs.clear();
    const auto positions = static_cast<int64_t>(all / channels);
    std::map<IntegerId, size_t> places;
    for (size_t k = 0; k < all; ++k) places.emplace(read[0].values[k], k);
    for (size_t p = 0; p < all / channels; ++p)
      for (const ReadValues& one : read)
        for (size_t c = 0; c < channels; ++c) result.inputs.push_back(one.values[p * channels + c]);
    result.outputs.assign(all, -1);
    for (size_t k = 0; k < layer.outputs.size(); ++k) {
      const auto place = places.find(layer.inputs[k]);
      if (place == places.end())
        refuse_stream(graph_, fmt::format("{} adds constants", name_of(layer)));
      result.outputs[place->second] = layer.outputs[k];
    }
    const auto one = static_cast<int64_t>(channels);
    result.sliding = Sliding{.channels = 2 * one,
                             .results = one,
                             .size = {1, positions},
                             .kernel = {1, 1},
                             .stride = {1, 1},
                             .before = {0, 0},
                             .after = {0, 0},
                             .dilation = {1, 1},
                             .result = {1, positions}};
    return result;
  }

  void add_stage(size_t k) {
    LinearLayer layer = graph_.linear[k];
    StreamStage stage;
    stage.name = name_of(layer);
    const std::vector<ReadValues>& read = reads_[k];
    if (!layer.others.empty()) {
      layer = summed(graph_.linear[k], read);
      stream_ = layer.inputs;
    } else {
      stream_ = read.at(0).values;
    }
    for (const ReadValues& one : read) stage.sources.push_back(one.source);
    stage.windows = layer.sliding;
    stage.largest = layer.sliding && layer.sliding->largest;
    if (stage.windows && layer.inputs.size() != stream_.size())
      refuse_stream(graph_, fmt::format("{} reads {} values of {}", stage.name, layer.inputs.size(),
                                        stream_.size()));
    std::map<IntegerId, size_t> sums;
    for (size_t o = 0; o < layer.outputs.size(); ++o)
      if (layer.outputs[o] >= 0) sums.try_emplace(layer.outputs[o], o);
    if (sums.empty()) refuse_stream(graph_, fmt::format("{} has constant outputs", stage.name));
    const std::vector<Reader>& readers = readers_[k + 1];
    stage.whole = stage.windows || readers.size() > 1 || readers[0].adds || readers[0].slides ||
                  readers[0].layer != k + 1;
    const std::vector<IntegerId> ends = stage.windows ? plane_ends(stage, layer, sums, readers)
                                                      : vector_ends(stage, layer, sums, readers);
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
    stage.in = element_of(in_ranges);
    stage.out = element_of(out_ranges);
    network_.stages.push_back(std::move(stage));
  }

  // What a reader is given of stage k: so many of its results' elements from the first on.
  void give(size_t k, const Reader& reader, std::vector<IntegerId> values, size_t first,
            size_t count) {
    if (reader.ends) {
      network_.output_order = places_in(values, graph_.outputs);
      return;
    }
    reads_[reader.layer][reader.operand] = {
        std::move(values), {static_cast<int>(k), static_cast<int>(first), static_cast<int>(count)}};
  }

  // A layer on a vector: what is read of it, in the readers' order.
  std::vector<IntegerId> vector_ends(StreamStage& stage, const LinearLayer& layer,
                                     const std::map<IntegerId, size_t>& sums,
                                     const std::vector<Reader>& readers) {
    const size_t k = network_.stages.size();
    std::vector<IntegerId> ends;
    for (const Reader& reader : readers) {
      std::vector<IntegerId> own = *reader.values;
      if (!reader.ends && !reader.slides && !reader.adds)
        own.erase(std::remove(own.begin(), own.end(), -1), own.end());
      // Lists that stand there already are given once.
      const auto known = std::search(ends.begin(), ends.end(), own.begin(), own.end());
      const auto first = static_cast<size_t>(known - ends.begin());
      if (known == ends.end()) ends.insert(ends.end(), own.begin(), own.end());
      give(k, reader, own, first, own.size());
    }
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

  // Of every channel of a plane that a reader wants, and of every position: the value.
  std::vector<std::vector<IntegerId>> channels_of(const StreamStage& stage,
                                                  const std::map<IntegerId, size_t>& sums,
                                                  const Reader& reader, size_t positions) {
    std::vector<IntegerId> read;
    if (reader.slides)
      read = *reader.values;
    else if (reader.ends && graph_.outputs.size() % positions == 0)
      read = lies_by_position(sums, graph_.outputs, whole(stage.windows->results), positions)
                 ? graph_.outputs
                 : by_position(graph_.outputs,
                               static_cast<int64_t>(graph_.outputs.size() / positions));
    if (read.empty()) return channels_read(stage, sums, *reader.values, positions);
    if (read.size() % positions != 0)
      refuse_stream(graph_, fmt::format("what {} computes at {} positions is read as {} values",
                                        stage.name, positions, read.size()));
    std::vector<std::vector<IntegerId>> channels(read.size() / positions,
                                                 std::vector<IntegerId>(positions, -1));
    for (size_t k = 0; k < read.size(); ++k)
      channels[k % channels.size()][k / channels.size()] = read[k];
    return channels;
  }

  // A layer over windows: all channels at every position, whether they are read there or not.
  std::vector<IntegerId> plane_ends(StreamStage& stage, const LinearLayer& layer,
                                    const std::map<IntegerId, size_t>& sums,
                                    const std::vector<Reader>& readers) {
    const Sliding& s = *stage.windows;
    const size_t positions = whole(s.result[0] * s.result[1]), k = network_.stages.size();
    MASE_CHECK(layer.outputs.size() == positions * whole(s.results), "{} sums",
               layer.outputs.size());
    std::vector<std::vector<IntegerId>> channels;
    for (const Reader& reader : readers) {
      const std::vector<std::vector<IntegerId>> own = channels_of(stage, sums, reader, positions);
      const auto known = std::search(channels.begin(), channels.end(), own.begin(), own.end());
      const auto first = static_cast<size_t>(known - channels.begin());
      if (known == channels.end()) channels.insert(channels.end(), own.begin(), own.end());
      std::vector<IntegerId> values;
      for (size_t p = 0; p < positions; ++p)
        for (const std::vector<IntegerId>& channel : own) values.push_back(channel[p]);
      give(k, reader, std::move(values), first, own.size());
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
  std::map<IntegerId, int> owners_;             // of sums: the stage
  std::vector<std::vector<Reader>> readers_;    // of the inputs, then of every stage
  std::vector<std::vector<ReadValues>> reads_;  // of every layer: its operands
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

std::vector<std::pair<size_t, size_t>> readers_of(const std::vector<StreamStage>& stages,
                                                  int source) {
  std::vector<std::pair<size_t, size_t>> readers;
  for (size_t k = 0; k < stages.size(); ++k)
    for (size_t i = 0; i < stages[k].sources.size(); ++i)
      if (stages[k].sources[i].stage == source) readers.emplace_back(k, i);
  return readers;
}

StreamNetwork stream_network(const IntegerGraph& graph) { return StageFinder(graph).run(); }

namespace {

// What a stage is given: its sources' elements position by position.
std::vector<int64_t> gathered(const StreamNetwork& network, const StreamStage& stage,
                              const std::vector<std::vector<int64_t>>& given, size_t rows) {
  const auto elements = [&](const StreamSource& source) {
    return whole(source.stage < 0 ? network.channels
                                  : network.stages[whole(source.stage)].outputs());
  };
  const StreamSource& first = stage.sources[0];
  const std::vector<int64_t>& all = given[whole(first.stage + 1)];
  if (stage.sources.size() == 1 && whole(first.count) == elements(first)) return all;
  std::vector<int64_t> result;
  const size_t positions = all.size() / rows / elements(first);
  for (size_t p = 0; p < positions; ++p)
    for (const StreamSource& source : stage.sources) {
      const auto from =
          given[whole(source.stage + 1)].begin() +
          static_cast<std::ptrdiff_t>((p * elements(source) + whole(source.first)) * rows);
      result.insert(result.end(), from,
                    from + static_cast<std::ptrdiff_t>(whole(source.count) * rows));
    }
  return result;
}

}  // namespace

std::vector<int64_t> run_stages(const StreamNetwork& network, const std::vector<int64_t>& rows) {
  const size_t in = network.input_order.size(), out = network.output_order.size();
  const size_t count = rows.size() / in;
  constexpr size_t block = 256;  // rows at a time
  std::vector<int64_t> results(count * out);
  for (size_t first = 0; first < count; first += block) {
    const size_t own = std::min(block, count - first);
    std::vector<std::vector<int64_t>> given(1, std::vector<int64_t>(own * in));
    for (size_t k = 0; k < in; ++k)
      for (size_t row = 0; row < own; ++row)
        given[0][k * own + row] = rows[(first + row) * in + whole(network.input_order[k])];
    for (const StreamStage& stage : network.stages)
      given.push_back(run_stage(stage, gathered(network, stage, given, own), own));
    for (size_t k = 0; k < out; ++k)
      for (size_t row = 0; row < own; ++row)
        results[(first + row) * out + whole(network.output_order[k])] = given.back()[k * own + row];
  }
  return results;
}

}  // namespace mase
