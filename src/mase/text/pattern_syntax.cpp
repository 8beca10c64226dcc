// SPDX-License-Identifier: Apache-2.0
#include "mase/text/pattern_syntax.h"

#include <optional>

#include "mase/base/error.h"
#include "mase/base/text.h"
#include "mase/text/unicode.h"

namespace mase {
namespace {

constexpr size_t longest_text_pattern = 4096;
constexpr int deepest_group = 50, most_repetitions = 256;

class PatternParser {
 public:
  PatternParser(const std::string& text, const std::string& place) : text_(text), place_(place) {}

  PatternNode whole() {
    if (text_.size() > longest_text_pattern) refuse("is longer than 4096 bytes");
    if (first_invalid_utf8(text_) < text_.size()) refuse("is not UTF-8");
    PatternNode node = choice(false);
    if (at_ < text_.size()) refuse("has a ')' too many");
    return node;
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const {
    throw Error(
        place_, fmt::format("the pattern '{}' {}", printable(text_.substr(0, 200)), why),
        "patterns are sets, groups, choices, repetitions and a look ahead at one character");
  }

  bool done() const { return at_ >= text_.size(); }
  bool take(std::string_view word) {
    if (std::string_view(text_).substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }
  uint32_t code() {
    if (done()) refuse("ends too early");
    const CodePoint next = code_point_at(text_, at_);
    at_ += next.bytes;
    return next.code;
  }

  static PatternNode of(CodeSet codes) {
    return {.kind = PatternNode::set, .codes = std::move(codes)};
  }

  PatternNode choice(bool any_case) {
    if (++depth_ > deepest_group) refuse("has groups too deep in groups");
    PatternNode node{.kind = PatternNode::choice};
    do node.parts.push_back(sequence(any_case));
    while (take("|"));
    --depth_;
    return node.parts.size() == 1 ? std::move(node.parts[0]) : node;
  }

  PatternNode sequence(bool any_case) {
    PatternNode node{.kind = PatternNode::sequence};
    while (!done() && text_[at_] != '|' && text_[at_] != ')') {
      PatternNode part = atom(any_case);
      while (repeats(part)) {
      }
      node.parts.push_back(std::move(part));
    }
    return node;
  }

  // Whether a repetition follows; the node becomes it.
  bool repeats(PatternNode& node) {
    int least = 0, most = -1;
    if (take("*")) {
    } else if (take("+")) {
      least = 1;
    } else if (take("?")) {
      most = 1;
    } else if (!done() && text_[at_] == '{' && counts(least, most)) {
    } else {
      return false;
    }
    if (most > most_repetitions || least > most_repetitions)
      refuse("repeats something more than 256 times");
    if (node.kind == PatternNode::look || node.kind >= PatternNode::line_start)
      refuse("repeats what takes no character");
    const bool reluctant = take("?"), possessive = !reluctant && take("+");
    if (possessive) {
      possess(node, least, most);
    } else {
      PatternNode repeated{
          .kind = PatternNode::repeat, .least = least, .most = most, .greedy = !reluctant};
      repeated.parts.push_back(std::move(node));
      node = std::move(repeated);
    }
    return true;
  }

  bool counts(int& least, int& most) {
    const size_t start = at_++;
    const auto number = [&]() -> std::optional<int> {
      int value = 0;
      const size_t from = at_;
      for (; !done() && text_[at_] >= '0' && text_[at_] <= '9' && value <= most_repetitions; ++at_)
        value = value * 10 + (text_[at_] - '0');
      return at_ > from ? std::optional<int>(value) : std::nullopt;
    };
    const std::optional<int> first = number();
    least = first.value_or(0);
    most = least;
    std::optional<int> second;
    if (take(",")) {
      second = number();
      most = second.value_or(-1);
    }
    if ((!first && !second) || !take("}") || (most >= 0 && most < least)) {
      at_ = start;
      refuse("has a '{' that begins no repetition");
    }
    return true;
  }

  // A set that is never given back: as many as there are means that none follows, unless the
  // limit was reached.
  void possess(PatternNode& node, int least, int most) {
    if (node.kind != PatternNode::set) refuse("holds on to something that is no set of characters");
    PatternNode none_follows{.kind = PatternNode::look, .codes = node.codes, .negative = true};
    const auto times = [&](int from, int to) {
      PatternNode repeated{.kind = PatternNode::repeat, .least = from, .most = to};
      repeated.parts.push_back(node);
      return repeated;
    };
    PatternNode fewer{.kind = PatternNode::sequence};
    PatternNode result{.kind = PatternNode::choice};
    if (most < 0) {
      fewer.parts.push_back(times(least, -1));
      fewer.parts.push_back(std::move(none_follows));
      node = std::move(fewer);
      return;
    }
    result.parts.push_back(times(most, most));
    if (most > least) {
      fewer.parts.push_back(times(least, most - 1));
      fewer.parts.push_back(std::move(none_follows));
      result.parts.push_back(std::move(fewer));
    }
    node = std::move(result);
  }

  PatternNode atom(bool any_case) {
    if (take("(")) return group(any_case);
    if (take("[")) return of(brackets(any_case));
    if (take(".")) return of({.ranges = {{'\n', '\n'}}, .complement = true});
    if (take("^")) return {.kind = PatternNode::line_start};
    if (take("$")) return {.kind = PatternNode::line_end};
    if (take("\\z")) return {.kind = PatternNode::text_end};
    if (take("\\")) return of(escape(any_case));
    const uint32_t next = code();
    if (next == '*' || next == '+' || next == '?') refuse("repeats nothing");
    return of(letter(next, any_case));
  }

  PatternNode group(bool any_case) {
    PatternNode node;
    const bool negative = text_.compare(at_, 2, "?!") == 0;
    if (negative || text_.compare(at_, 2, "?=") == 0) {
      at_ += 2;
      node = choice(any_case);
      while (node.kind == PatternNode::sequence && node.parts.size() == 1) {
        PatternNode only = std::move(node.parts[0]);
        node = std::move(only);
      }
      if (node.kind != PatternNode::set) refuse("looks ahead at more than one character");
      node.kind = PatternNode::look;
      node.negative = negative;
    } else {
      if (take("?i:"))
        any_case = true;
      else if (!take("?:") && !done() && text_[at_] == '?')
        refuse(fmt::format("has a group '(?{}'", printable(text_.substr(at_ + 1, 2))));
      node = choice(any_case);
    }
    if (!take(")")) refuse("has a '(' that is not closed");
    return node;
  }

  static CodeSet letter(uint32_t code, bool any_case) {
    CodeSet set{.ranges = {{code, code}}};
    const bool latin = (code >= 'a' && code <= 'z') || (code >= 'A' && code <= 'Z');
    if (!any_case || !latin) return set;
    set.ranges.push_back({code ^ 0x20, code ^ 0x20});
    if ((code | 0x20) == 's') set.ranges.push_back({0x17F, 0x17F});    // the long s
    if ((code | 0x20) == 'k') set.ranges.push_back({0x212A, 0x212A});  // of Kelvin
    return set;
  }

  CodeSet escape(bool any_case) {
    const uint32_t next = code();
    CodeSet set;
    switch (next) {
      case 'S':
        set.complement = true;
        [[fallthrough]];
      case 's':
        set.ranges = white_space_ranges();
        return set;
      case 'D':
        set.complement = true;
        [[fallthrough]];
      case 'd':
        set.categories = categories_named("Nd");
        return set;
      case 'W':
        set.complement = true;
        [[fallthrough]];
      case 'w':
        return words(set.complement);
      case 'P':
        set.complement = true;
        [[fallthrough]];
      case 'p':
        return named(set.complement);
      case 'n':
        return letter('\n', false);
      case 'r':
        return letter('\r', false);
      case 't':
        return letter('\t', false);
      case 'f':
        return letter('\f', false);
      case 'v':
        return letter('\v', false);
      case 'x':
        return letter(take("{") ? hexadecimal(8, true) : hexadecimal(2, false), any_case);
      case 'u':
        return letter(hexadecimal(4, false), any_case);
      default:
        if ((next | 0x20) >= 'a' && (next | 0x20) <= 'z')
          refuse(fmt::format("has '\\{}'", static_cast<char>(next)));
        if (next >= '0' && next <= '9') refuse("refers back");
        return letter(next, any_case);
    }
  }

  static CodeSet words(bool complement) {
    CodeSet set;
    for (const char* name : {"L", "M", "Nd", "Nl", "Pc"}) set.categories |= categories_named(name);
    set.ranges = letter_sign_ranges();
    // Of the other numbers those of Latin-1 alone, as in the library that tokenizer files are
    // written for.
    for (const uint32_t code : {0xB2, 0xB3, 0xB9, 0xBC, 0xBD, 0xBE})
      set.ranges.push_back({code, code});
    set.complement = complement;
    return set;
  }

  // Chinese characters: the script Han of Unicode 14, with what it has beside the ideographs.
  static std::vector<std::pair<uint32_t, uint32_t>> han_ranges() {
    return {{0x2E80, 0x2E99},   {0x2E9B, 0x2EF3},   {0x2F00, 0x2FD5},   {0x3005, 0x3005},
            {0x3007, 0x3007},   {0x3021, 0x3029},   {0x3038, 0x303B},   {0x3400, 0x4DBF},
            {0x4E00, 0x9FFF},   {0xF900, 0xFA6D},   {0xFA70, 0xFAD9},   {0x16FE2, 0x16FE3},
            {0x16FF0, 0x16FF1}, {0x20000, 0x2A6DF}, {0x2A700, 0x2B738}, {0x2B740, 0x2B81D},
            {0x2B820, 0x2CEA1}, {0x2CEB0, 0x2EBE0}, {0x2F800, 0x2FA1D}, {0x30000, 0x3134A}};
  }

  CodeSet named(bool complement) {
    if (!take("{")) refuse("has '\\p' without a name in braces");
    const size_t end = text_.find('}', at_);
    if (end == std::string::npos) refuse("has a '{' that is not closed");
    std::string name = text_.substr(at_, end - at_);
    at_ = end + 1;
    if (!name.empty() && name[0] == '^') {
      complement = !complement;
      name.erase(0, 1);
    }
    CodeSet set{.complement = complement};
    if (name == "Han" || name == "Script=Han" || name == "sc=Han") {
      set.ranges = han_ranges();
      return set;
    }
    set.categories = categories_named(name);
    if (set.categories == 0) refuse(fmt::format("names the class '{}'", printable(name)));
    return set;
  }

  uint32_t hexadecimal(int digits, bool braces) {
    uint32_t value = 0;
    int count = 0;
    for (; count < digits && !done(); ++count, ++at_) {
      const char c = text_[at_];
      const char low = static_cast<char>(c | 0x20);
      if (c >= '0' && c <= '9')
        value = value * 16 + static_cast<uint32_t>(c - '0');
      else if (low >= 'a' && low <= 'f')
        value = value * 16 + static_cast<uint32_t>(low - 'a' + 10);
      else
        break;
      if (value > 0x10FFFF) refuse("names a code point beyond the last");
    }
    if (count == 0 || (!braces && count != digits) || (braces && !take("}")))
      refuse("has a broken hexadecimal number");
    return value;
  }

  CodeSet brackets(bool any_case) {
    if (++depth_ > deepest_group) refuse("has sets too deep in sets");
    CodeSet set;
    set.complement = take("^");
    bool first = true;
    for (;; first = false) {
      if (done()) refuse("has a '[' that is not closed");
      if (!first && take("]")) break;
      if (take("&&")) {  // what was read so far, and what is behind it
        CodeSet rest = after_and(any_case);
        set.all.push_back(std::move(rest));
        break;
      }
      if (text_.compare(at_, 2, "[:") == 0) refuse("has a class in [: :]");
      if (take("[")) {
        set.parts.push_back(brackets(any_case));
        continue;
      }
      add_item(set, any_case);
    }
    --depth_;
    return set;
  }

  CodeSet after_and(bool any_case) {
    CodeSet set;
    for (;;) {
      if (done()) refuse("has a '[' that is not closed");
      if (take("]")) return set;
      if (text_.compare(at_, 2, "&&") == 0) refuse("has '&&' twice in a set");
      if (take("["))
        set.parts.push_back(brackets(any_case));
      else
        add_item(set, any_case);
    }
  }

  void add_item(CodeSet& set, bool any_case) {
    CodeSet item = take("\\") ? escape(any_case) : letter(code(), any_case);
    const bool single = item.ranges.size() >= 1 && item.ranges[0].first == item.ranges[0].second &&
                        !item.complement && item.categories == 0 && item.ranges.size() <= 3;
    const bool range = single && at_ + 1 < text_.size() && text_[at_] == '-' &&
                       text_[at_ + 1] != ']' && text_[at_ + 1] != '[';
    if (!range) {
      set.parts.push_back(std::move(item));
      return;
    }
    ++at_;
    const CodeSet last = take("\\") ? escape(false) : letter(code(), false);
    const uint32_t from = item.ranges[0].first;
    if (last.ranges.size() != 1 || last.ranges[0].first < from ||
        last.ranges[0].first != last.ranges[0].second || last.categories != 0)
      refuse("has a range in a set that goes backwards");
    if (any_case) refuse("has a range of letters of any case");
    set.ranges.push_back({from, last.ranges[0].first});
  }

  const std::string& text_;
  const std::string& place_;
  size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

PatternNode parse_text_pattern(const std::string& expression, const std::string& place) {
  return PatternParser(expression, place).whole();
}

}  // namespace mase
