// SPDX-License-Identifier: Apache-2.0
#include "mase/hardware/verify/module_claim.h"

#include <algorithm>
#include <cctype>

#include "mase/base/text.h"

namespace mase {
namespace {

constexpr int64_t most_latency = 1 << 16;

bool is_plain_name(const std::string& name) {
  return !name.empty() && !std::isdigit(static_cast<unsigned char>(name[0])) &&
         std::all_of(name.begin(), name.end(),
                     [](unsigned char c) { return c < 128 && (std::isalnum(c) || c == '_'); });
}

}  // namespace

std::vector<ModuleClaim> module_claims(const Value& certificate, const std::string& place) {
  const auto refuse = [&](const std::string& cause) {
    throw Error(place, cause, "emit the design again (ch emit)");
  };
  std::vector<ModuleClaim> claims;
  for (const Value& one : certificate["modules"].as_list("modules")) {
    ModuleClaim claim;
    claim.name = one["module"].as_string("module");
    claim.target = one["target"].as_string("target");
    for (const std::string& name : {claim.name, claim.target})
      if (!name.empty() && !is_plain_name(name))
        refuse(fmt::format("'{}' is no name of a module or target", printable(name)));
    if (claim.name.empty()) refuse("a module has no name");
    const int64_t latency = one["latency_cycles"].as_int("latency_cycles");
    if (latency < 0 || latency > most_latency)
      refuse(fmt::format("latency_cycles of {} is {}", claim.name, latency));
    claim.latency = static_cast<int>(latency);
    claim.valid = one["valid"].as_bool("valid");
    claim.graph = read_checked_graph(one["graph"].as_string("graph"), place);
    if (!one["network"].is_null())
      claim.network = read_checked_graph(one["network"].as_string("network"), place);
    for (const Value& name : one["signals"].as_list("signals"))
      claim.signals.push_back(name.as_string("signals"));
    if (claim.signals.size() != claim.graph.nodes.size())
      refuse(fmt::format("{} has {} signals for {} nodes", claim.name, claim.signals.size(),
                         claim.graph.nodes.size()));
    claims.push_back(std::move(claim));
  }
  if (claims.empty()) refuse("names no module");
  return claims;
}

}  // namespace mase
