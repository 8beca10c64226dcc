// SPDX-License-Identifier: Apache-2.0
#include "mase/text/text_pattern.h"

#include <algorithm>
#include <bit>
#include <map>

#include "mase/base/error.h"
#include "mase/base/text.h"
#include "mase/text/pattern_syntax.h"

namespace mase {
namespace {

constexpr size_t most_steps = 4000, most_classes = 250, most_work = 1 << 26;
constexpr uint32_t category_count = 30, last_code = 0x10FFFF;

struct PatternStep {
  enum Kind { set, fork, jump, look, line_start, line_end, text_end, found };
  Kind kind = found;
  uint32_t set_number = 0;
  uint32_t first = 0, second = 0;  // where a fork goes, the preferred way first
  bool negative = false;
};

// A tree as a list of steps.
class PatternProgram {
 public:
  std::vector<PatternStep> steps;
  std::vector<CodeSet> sets;
  bool fits = true;

  void add(const PatternNode& node) {
    if (steps.size() > most_steps) fits = false;
    if (!fits) return;
    switch (node.kind) {
      case PatternNode::nothing:
        break;
      case PatternNode::set:
        step({.kind = PatternStep::set, .set_number = number(node.codes)});
        break;
      case PatternNode::look:
        step({.kind = PatternStep::look,
              .set_number = number(node.codes),
              .negative = node.negative});
        break;
      case PatternNode::line_start:
        step({.kind = PatternStep::line_start});
        break;
      case PatternNode::line_end:
        step({.kind = PatternStep::line_end});
        break;
      case PatternNode::text_end:
        step({.kind = PatternStep::text_end});
        break;
      case PatternNode::sequence:
        for (const PatternNode& part : node.parts) add(part);
        break;
      case PatternNode::choice:
        add_choice(node);
        break;
      case PatternNode::repeat:
        add_repeat(node);
        break;
    }
  }

 private:
  uint32_t here() const { return static_cast<uint32_t>(steps.size()); }
  uint32_t step(PatternStep step) {
    steps.push_back(step);
    return here() - 1;
  }
  uint32_t number(const CodeSet& set) {
    const auto known = std::find(sets.begin(), sets.end(), set);
    if (known != sets.end()) return static_cast<uint32_t>(known - sets.begin());
    sets.push_back(set);
    return static_cast<uint32_t>(sets.size() - 1);
  }

  void add_choice(const PatternNode& node) {
    std::vector<uint32_t> jumps;
    for (size_t i = 0; i < node.parts.size(); ++i) {
      const bool last = i + 1 == node.parts.size();
      const uint32_t fork = last ? 0 : step({.kind = PatternStep::fork});
      if (!last) steps[fork].first = here();
      add(node.parts[i]);
      if (last) break;
      jumps.push_back(step({.kind = PatternStep::jump}));
      steps[fork].second = here();
    }
    for (const uint32_t jump : jumps) steps[jump].first = here();
  }

  void add_repeat(const PatternNode& node) {
    const PatternNode& part = node.parts.at(0);
    for (int i = 0; i < node.least && fits; ++i) add(part);
    const auto choose = [&](uint32_t fork, uint32_t go_on, uint32_t leave) {
      steps[fork].first = node.greedy ? go_on : leave;
      steps[fork].second = node.greedy ? leave : go_on;
    };
    if (node.most < 0) {
      const uint32_t fork = step({.kind = PatternStep::fork});
      add(part);
      step({.kind = PatternStep::jump, .first = fork});
      choose(fork, fork + 1, here());
      return;
    }
    std::vector<uint32_t> forks;
    for (int i = node.least; i < node.most && fits; ++i) {
      forks.push_back(step({.kind = PatternStep::fork}));
      add(part);
    }
    for (const uint32_t fork : forks) choose(fork, fork + 1, here());
  }
};

// From lists of steps to states: a state is the ways that are open, the preferred ones first.
class StateTable {
 public:
  // `members` says of each set and class of code points whether it is inside.
  StateTable(const PatternProgram& program, const std::vector<std::vector<bool>>& members,
             uint32_t classes, uint32_t newline)
      : program_(program), members_(members), classes_(classes), newline_(newline) {}

  std::array<uint32_t, 2> starts{};
  std::vector<uint32_t> moves;

  bool build() {   // whether it is small enough
    state_of({});  // no way is open
    starts = {state_of({.steps = {0}, .line_start = false}),
              state_of({.steps = {0}, .line_start = true})};
    for (uint32_t state = 0; state < open_.size(); ++state) {
      const Ways ways = open_[state];
      for (uint32_t kind = 0; kind <= classes_; ++kind) moves.push_back(move(ways, kind));
      if (moves.size() * program_.steps.size() > most_work) return false;
    }
    return true;
  }

 private:
  struct Ways {
    std::vector<uint32_t> steps = {};
    bool line_start = false;
    auto operator<=>(const Ways&) const = default;
  };

  uint32_t state_of(Ways ways) {
    const auto [entry, added] =
        numbers_.emplace(std::move(ways), static_cast<uint32_t>(open_.size()));
    if (added) open_.push_back(entry->first);
    return entry->second;
  }

  bool inside(uint32_t set, uint32_t kind) const { return kind < classes_ && members_[set][kind]; }

  // Follows the ways up to the code point of this class; the class behind the last is the end.
  uint32_t move(const Ways& ways, uint32_t kind) {
    std::vector<bool> seen(program_.steps.size());
    std::vector<uint32_t> pending(ways.steps.rbegin(), ways.steps.rend());
    Ways next{.line_start = kind == newline_};
    std::vector<bool> reached(program_.steps.size() + 1);
    bool found = false;
    while (!pending.empty() && !found) {
      const uint32_t at = pending.back();
      pending.pop_back();
      if (seen[at]) continue;
      seen[at] = true;
      const PatternStep& step = program_.steps[at];
      switch (step.kind) {
        case PatternStep::set:
          if (inside(step.set_number, kind) && !reached[at + 1]) {
            reached[at + 1] = true;
            next.steps.push_back(at + 1);
          }
          break;
        case PatternStep::fork:
          pending.push_back(step.second);
          pending.push_back(step.first);
          break;
        case PatternStep::jump:
          pending.push_back(step.first);
          break;
        case PatternStep::look:
          if (inside(step.set_number, kind) != step.negative) pending.push_back(at + 1);
          break;
        case PatternStep::line_start:
          if (ways.line_start) pending.push_back(at + 1);
          break;
        case PatternStep::line_end:
          if (kind == classes_ || kind == newline_) pending.push_back(at + 1);
          break;
        case PatternStep::text_end:
          if (kind == classes_) pending.push_back(at + 1);
          break;
        case PatternStep::found:
          found = true;  // ways behind it are not wanted any more
          break;
      }
    }
    if (next.steps.empty()) next.line_start = false;
    return state_of(std::move(next)) << 1 | (found ? 1 : 0);
  }

  const PatternProgram& program_;
  const std::vector<std::vector<bool>>& members_;
  const uint32_t classes_, newline_;
  std::map<Ways, uint32_t> numbers_;
  std::vector<Ways> open_;
};

}  // namespace

TextPattern::TextPattern(const std::string& expression, const std::string& place)
    : expression_(expression), place_(place) {
  const auto refuse = [&](const char* why) {
    throw Error(place,
                fmt::format("the pattern '{}' {}", printable(expression.substr(0, 200)), why),
                "simplify it");
  };
  PatternProgram program;
  program.add(parse_text_pattern(expression, place));
  program.steps.push_back({.kind = PatternStep::found});
  if (!program.fits) refuse("is too large");

  // Code points that no set tells apart are of one class.
  borders_ = {0, '\n', '\n' + 1};
  for (const CodeSet& set : program.sets) set.add_borders(borders_);
  std::sort(borders_.begin(), borders_.end());
  borders_.erase(std::unique(borders_.begin(), borders_.end()), borders_.end());
  while (borders_.back() > last_code) borders_.pop_back();
  std::map<std::vector<bool>, uint32_t> numbers;
  std::vector<std::vector<bool>> members(program.sets.size());
  uint32_t newline = 0;
  for (const uint32_t border : borders_)
    for (uint32_t category = 0; category < category_count; ++category) {
      std::vector<bool> of(program.sets.size() + 1);
      of.back() = border == '\n';
      for (size_t i = 0; i < program.sets.size(); ++i)
        of[i] = program.sets[i].contains(border, uint32_t{1} << category);
      const auto [entry, added] = numbers.emplace(of, static_cast<uint32_t>(numbers.size()));
      if (added)
        for (size_t i = 0; i < program.sets.size(); ++i) members[i].push_back(of[i]);
      if (border == '\n') newline = entry->second;
      if (numbers.size() > most_classes) refuse("tells too many kinds of characters apart");
      classes_.push_back(static_cast<uint8_t>(entry->second));
    }
  end_class_ = static_cast<uint32_t>(numbers.size());
  class_count_ = end_class_ + 1;
  for (uint32_t code = 0; code < ascii_.size(); ++code)
    ascii_[code] = static_cast<uint8_t>(class_of(code));

  StateTable table(program, members, end_class_, newline);
  if (!table.build()) refuse("needs too many states");
  moves_ = std::move(table.moves);
  starts_ = table.starts;
}

TextPattern TextPattern::literal(std::string_view text, const std::string& place) {
  std::string expression;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = byte >= 0x80 || byte <= ' ' || (c >= '0' && c <= '9') ||
                       ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
    if (!plain) expression += '\\';
    expression += c;
  }
  return TextPattern(expression, place);
}

uint32_t TextPattern::class_of(uint32_t code) const {
  const auto stretch = std::upper_bound(borders_.begin(), borders_.end(), code) - borders_.begin();
  const auto category = static_cast<uint32_t>(std::countr_zero(category_bit(code)));
  return classes_[(static_cast<size_t>(stretch) - 1) * category_count + category];
}

void TextPattern::too_slow() const {
  throw Error(place_,
              fmt::format("the pattern '{}' takes more than linear time on this text",
                          printable(expression_.substr(0, 200))),
              "simplify it");
}

std::vector<TextSpan> TextPattern::matches(std::string_view text) const {
  std::vector<TextSpan> spans;
  each(text, [&](size_t begin, size_t end, bool matched) {
    if (matched) spans.push_back({static_cast<uint32_t>(begin), static_cast<uint32_t>(end)});
  });
  return spans;
}

}  // namespace mase
