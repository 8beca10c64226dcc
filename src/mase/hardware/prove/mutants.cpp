// SPDX-License-Identifier: Apache-2.0
#include "mase/hardware/prove/mutants.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <set>

#include "mase/base/file.h"
#include "mase/base/random.h"
#include "mase/base/temporary_folder.h"
#include "mase/hardware/emit/design_folder.h"
#include "mase/hardware/prove/certificate.h"

namespace mase {
namespace {

namespace fs = std::filesystem;

struct Token {
  size_t at = 0, length = 0;
  std::string text;
};

bool of_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

// Names, numbers and signs; no comments.
std::vector<Token> tokens_of(const std::string& text) {
  std::vector<Token> tokens;
  for (size_t at = 0; at < text.size();) {
    size_t end = at + 1;
    if (text.compare(at, 2, "//") == 0) {
      end = std::min(text.find('\n', at), text.size());
    } else if (text.compare(at, 2, "/*") == 0) {
      end = std::min(text.find("*/", at), text.size() - 2) + 2;
    } else if (text[at] == '`') {
      end = std::min(text.find('\n', at), text.size());
    } else if (of_name(text[at])) {
      while (end < text.size() && (of_name(text[end]) || text[end] == '\'')) ++end;
      tokens.push_back({at, end - at, text.substr(at, end - at)});
    } else if (!std::isspace(static_cast<unsigned char>(text[at]))) {
      tokens.push_back({at, 1, text.substr(at, 1)});
    }
    at = end;
  }
  return tokens;
}

bool is_number(const std::string& text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// 6'd13 with another bit; nothing for what has another form.
std::string other_constant(const std::string& text, Random& random) {
  const size_t base = text.find('\'');
  if (base == std::string::npos || base + 2 > text.size()) return "";
  const int64_t width = parse_integer(text.substr(0, base)).value_or(0);
  std::string digits = text.substr(base + 2);
  if (width <= 0 || digits.empty()) return "";
  if (text[base + 1] == 'd') {
    const auto value = parse_integer(digits);
    if (!value || width > 62) return "";
    const int64_t flipped = *value ^ (int64_t{1} << random.below(static_cast<uint64_t>(width)));
    return fmt::format("{}'d{}", width, flipped);
  }
  if (text[base + 1] == 'b') {
    char& digit = digits[random.below(digits.size())];
    digit = digit == '0' ? '1' : '0';
    return text.substr(0, base + 2) + digits;
  }
  if (text[base + 1] != 'h') return "";
  const uint64_t bit = random.below(static_cast<uint64_t>(width));
  if (bit / 4 >= digits.size()) return "";
  char& digit = digits[digits.size() - 1 - bit / 4];
  const int value = digit <= '9' ? digit - '0' : std::tolower(digit) - 'a' + 10;
  digit = "0123456789abcdef"[(value ^ 1 << bit % 4) & 15];
  return text.substr(0, base + 2) + digits;
}

// Declared wires by their range as written, so that one stands where another of its width did.
std::map<std::string, std::string> declared(const std::vector<Token>& tokens) {
  std::map<std::string, std::string> result;
  for (size_t k = 0; k + 1 < tokens.size(); ++k) {
    if (tokens[k].text != "wire" && tokens[k].text != "logic") continue;
    size_t next = k + 1;
    std::string range;
    if (tokens[next].text == "[") {
      while (next < tokens.size() && tokens[next].text != "]") range += tokens[next++].text;
      ++next;
    }
    if (next < tokens.size() && of_name(tokens[next].text[0])) result[tokens[next].text] = range;
  }
  return result;
}

// Everything that one fault could be.
std::vector<Fault> all_faults(const std::string& text, Random& random) {
  static const std::map<std::string, std::pair<const char*, const char*>> signs = {
      {"+", {"operator", "-"}},        {"-", {"operator", "+"}}, {"&", {"operator", "|"}},
      {"|", {"operator", "&"}},        {"^", {"operator", "&"}}, {"~", {"inversion", ""}},
      {"posedge", {"edge", "negedge"}}};
  const std::vector<Token> tokens = tokens_of(text);
  const std::map<std::string, std::string> wires = declared(tokens);
  std::map<std::string, std::vector<std::string>> by_range;
  for (const auto& [name, range] : wires) by_range[range].push_back(name);
  std::vector<Fault> faults;
  bool assigned = false, in_body = false;
  for (size_t k = 0; k < tokens.size(); ++k) {
    const Token& token = tokens[k];
    if (token.text == ";") {
      in_body = true;
      assigned = false;
    }
    if (token.text == "=") assigned = true;
    if (!in_body) continue;
    if (const auto sign = signs.find(token.text);
        sign != signs.end() && (assigned || token.text == "posedge"))
      faults.push_back({sign->second.first, token.at, token.length, sign->second.second});
    if (const std::string other = other_constant(token.text, random); !other.empty())
      faults.push_back({"constant", token.at, token.length, other});
    if (!assigned || !of_name(token.text[0])) continue;
    // A part of a vector: a bit lower, or higher at its end.
    if (k + 5 < tokens.size() && tokens[k + 1].text == "[" && is_number(tokens[k + 2].text)) {
      const bool range = tokens[k + 3].text == ":" && is_number(tokens[k + 4].text);
      const int64_t high = parse_integer(tokens[k + 2].text).value_or(0),
                    low = range ? parse_integer(tokens[k + 4].text).value_or(0) : high;
      const int64_t by = low > 0 ? -1 : 1;
      const Token& last = range ? tokens[k + 4] : tokens[k + 2];
      faults.push_back(
          {"slice", tokens[k + 2].at, last.at + last.length - tokens[k + 2].at,
           range ? fmt::format("{}:{}", high + by, low + by) : fmt::format("{}", high + by)});
    }
    if (const auto wire = wires.find(token.text); wire != wires.end()) {
      const std::vector<std::string>& others = by_range[wire->second];
      const std::string& other = others[random.below(others.size())];
      if (other != token.text) faults.push_back({"operand", token.at, token.length, other});
    }
  }
  return faults;
}

std::string line_at(const std::string& text, size_t at) {
  const size_t begin = at == 0 ? 0 : text.rfind('\n', at - 1) + 1;
  return text.substr(begin, std::min(text.find('\n', at), text.size()) - begin);
}

}  // namespace

std::vector<Fault> faults_of(const std::string& text, int64_t count, uint64_t seed) {
  Random random(seed, "faults");
  std::vector<Fault> all = all_faults(text, random);
  const std::vector<uint32_t> order = random.permutation(static_cast<uint32_t>(all.size()));
  std::vector<Fault> result;
  for (const uint32_t k : order)
    if (static_cast<int64_t>(result.size()) < count) result.push_back(all[k]);
  return result;
}

MutationReport plant_faults(const std::string& folder, int64_t count, uint64_t seed,
                            const std::function<void(const Mutant&)>& planted) {
  // That the graphs are the network's is no matter of the text.
  std::vector<ModuleClaim> modules = folder_claims(folder);
  for (ModuleClaim& module : modules) module.network.reset();
  int64_t length = 0;
  std::vector<std::string> texts;
  for (const ModuleClaim& module : modules) {
    texts.push_back(read_text_file((fs::path(folder) / "rtl" / (module.name + ".sv")).string()));
    length += static_cast<int64_t>(texts.back().size());
  }
  const TemporaryFolder apart((fs::temp_directory_path() / "mase-mutants-").string());
  copy_sources(folder, apart.path());
  MutationReport report;
  for (size_t m = 0; m < modules.size(); ++m) {
    const std::string& text = texts[m];
    const std::string path = fmt::format("{}/rtl/{}.sv", apart.path(), modules[m].name);
    const int64_t own = std::max<int64_t>(1, count * static_cast<int64_t>(text.size()) / length);
    for (const Fault& fault : faults_of(text, own, seed + m)) {
      std::string wrong = text;
      wrong.replace(fault.at, fault.length, fault.with);
      write_file_atomically(path, wrong);
      const auto before = text.begin();
      Mutant mutant{modules[m].name,
                    fault.kind,
                    1 + std::count(before, before + static_cast<std::ptrdiff_t>(fault.at), '\n'),
                    line_at(text, fault.at),
                    line_at(wrong, fault.at),
                    {}};
      if (check_modules({modules[m]}, apart.path())[0].proof.proved())
        // The solver knows no clock edges.
        mutant.fate = fault.kind != "edge" && same_by_sat(folder, apart.path(), modules[m].name,
                                                          modules[m].target, modules[m].latency)
                          ? Mutant::Fate::equivalent
                          : Mutant::Fate::undecided;
      ++report.planted;
      report.refused += mutant.fate == Mutant::Fate::refused;
      report.equivalent += mutant.fate == Mutant::Fate::equivalent;
      auto& [refused, all] = report.kinds[fault.kind];
      refused += mutant.fate == Mutant::Fate::refused;
      ++all;
      if (mutant.fate == Mutant::Fate::undecided) report.survivors.push_back(mutant);
      if (planted) planted(mutant);
    }
    write_file_atomically(path, text);
  }
  return report;
}

}  // namespace mase
