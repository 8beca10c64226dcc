// SPDX-License-Identifier: Apache-2.0
#include "mase/run/search/search_kept.h"

#include <iterator>

namespace mase {

void KeptNetworks::take(const search::Point& point, search::Losses losses, Graph network) {
  std::lock_guard lock(mutex_);
  for (const auto& [key, entry] : networks_)
    if (!entry.losses.empty() && search::dominates(entry.losses, losses)) return;
  for (auto entry = networks_.begin(); entry != networks_.end();) {
    const bool beaten =
        !entry->second.losses.empty() && search::dominates(losses, entry->second.losses);
    if (beaten) bytes_ -= entry->second.bytes;
    entry = beaten ? networks_.erase(entry) : std::next(entry);
  }
  const size_t bytes = static_cast<size_t>(network.parameter_count()) * sizeof(float);
  if (bytes_ + bytes > most_bytes) return;
  bytes_ += bytes;
  networks_[search::hash_point(point)] = {std::move(losses), std::move(network), bytes};
}

void KeptNetworks::keep(const search::Point& point, const Graph& network) {
  std::lock_guard lock(mutex_);
  networks_[search::hash_point(point)] = {{}, network, 0};
}

std::optional<Graph> KeptNetworks::find(const search::Point& point) {
  std::lock_guard lock(mutex_);
  const auto kept = networks_.find(search::hash_point(point));
  if (kept == networks_.end()) return {};
  return kept->second.network;
}

size_t KeptNetworks::size() {
  std::lock_guard lock(mutex_);
  return networks_.size();
}

}  // namespace mase
