// SPDX-License-Identifier: Apache-2.0
// Several objectives, all to be made small: who dominates whom, how much a set covers, which few
// cover the most. Infinite values are worse than all others and equal among themselves.
#pragma once

#include <cstddef>
#include <vector>

namespace mase::search {

using Losses = std::vector<double>;  // one point: a number per objective

bool dominates(const Losses& a, const Losses& b);

// 0 for points that none dominates, 1 for those that only rank 0 dominates, ... Where a penalty is
// above zero the point is infeasible: it ranks behind all feasible ones, by its penalty; one whose
// penalty is not a number ranks last.
std::vector<int> domination_ranks(const std::vector<Losses>& points,
                                  const std::vector<double>& penalties = {});

// Indices of the points that none dominates; of equal points all.
std::vector<size_t> pareto_front(const std::vector<Losses>& points);

// The exact volume between the points and the reference point; points beyond it add nothing.
double hypervolume(std::vector<Losses> points, const Losses& reference);

// `count` of the points, chosen one by one, each the one that adds most to the volume.
std::vector<size_t> hypervolume_subset(const std::vector<Losses>& points, size_t count,
                                       const Losses& reference);
// A little worse than the worst of the points in each objective.
Losses reference_point(const std::vector<Losses>& points);

// Deb's measure of how alone each point is (2002): infinite at the ends. Points that are equal in
// an objective stay in the order the objective before gave them; `loneliest_first` receives the
// points in the order in which they survive.
std::vector<double> crowding_distances(const std::vector<Losses>& points,
                                       std::vector<size_t>* loneliest_first = nullptr);

}  // namespace mase::search
