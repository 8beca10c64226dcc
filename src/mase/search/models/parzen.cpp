// SPDX-License-Identifier: Apache-2.0
#include "mase/search/models/parzen.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "mase/search/kernels/parzen.h"
#include "mase/search/models/truncated_normal.h"

namespace mase::search {
namespace {

constexpr double log_root_two_pi = 0.91893853320467274178;
constexpr double root_half = 0.70710678118654752440;
constexpr double minus_infinity = -std::numeric_limits<double>::infinity();
constexpr size_t fully_weighted = 25;
// From so many observations on the smallest deviation is range / 100.
constexpr size_t settled = 98;
// Discrete ranges up to this many values keep a table of every kernel's masses.
constexpr double tabulated = 256;
constexpr uint32_t prior = 0;  // its slot

// Of several equal observations the first and the last in order have the wide kernels. They are in
// an order as if drawn: by age the newest would always be one of those two, and among the trials
// that are not good its wide kernel speaks against whatever is near what was tried last.
uint32_t place_among_equals(uint32_t key) {
  key ^= key >> 16;
  key *= 0x85ebca6bu;
  key ^= key >> 13;
  key *= 0xc2b2ae35u;
  return key ^ key >> 16;
}

}  // namespace

struct ParzenEstimator::Dimension {
  const Distribution* distribution = nullptr;
  double low = 0, high = 0;  // on the line
  // By slot; `inverse` as kernels::Normals has it.
  std::vector<double> mu, sigma, inverse, norm;
  std::vector<float> scale, offset;  // likewise, with zeros at the end
  size_t normal = 0;                 // its place among those whose kernels are normal
  std::vector<NormalTails> tails;    // beyond the range
  std::vector<int32_t> choice;
  std::vector<uint32_t> cell;   // of tabulated ones: row of the table
  std::vector<uint32_t> order;  // slots by mu, the prior apart
  std::map<std::pair<double, double>, uint32_t> cells;
  mutable std::vector<double> table;  // rows of count() logarithms, not-a-number: not yet computed
  std::vector<uint32_t> touched;      // slots whose neighbours changed
  double even_share = 0;              // of a tabulated kernel's mass: what all values have alike

  bool categorical() const { return distribution->is_categorical(); }
  bool continuous() const { return !categorical() && !stepped(); }
  bool stepped() const { return !categorical() && distribution->step > 0; }
  bool tabular() const { return stepped() && distribution->count() <= tabulated; }

  // Logarithm of the mass that a kernel gives to one value of a stepped range.
  double mass(double mu_, double sigma_, double norm_, double value) const {
    const double half = distribution->step / 2;
    const double from = distribution->to_line(value - half);
    const double to = distribution->to_line(value + half);
    const double log_mass = normal_log_mass((from - mu_) / sigma_, (to - mu_) / sigma_) - norm_;
    if (even_share == 0) return log_mass;
    return std::log((1 - even_share) * std::exp(log_mass) + even_share / distribution->count());
  }
};

std::vector<double> recency_weights(size_t m) {
  std::vector<double> weights(m, 1.0);
  if (m < fully_weighted) return weights;
  const size_t ramp = m - fully_weighted;
  const double first = 1.0 / static_cast<double>(m);
  if (ramp == 1) weights[0] = first;
  if (ramp < 2) return weights;
  for (size_t i = 0; i < ramp; ++i)
    weights[i] = first + (1.0 - first) * static_cast<double>(i) / static_cast<double>(ramp - 1);
  return weights;
}

struct ParzenEstimator::Impl {
  const Space* space;
  std::vector<size_t> parameters;
  bool even;
  double smoothing;
  std::vector<Dimension> dimensions;
  std::vector<uint32_t> keys;    // in order, oldest first
  std::vector<uint32_t> slots;   // of the keys
  std::vector<uint32_t> key_of;  // by slot
  std::vector<uint32_t> free_slots;
  size_t slot_count = 1;       // the prior's included
  size_t settled_at = 0;       // observations when deviations were last computed
  bool made = false;           // deviations
  std::vector<double> weight;  // by slot; `total` with the prior's, which is one
  double total = 1, least_weight = 1;
  std::vector<double> base;          // by slot: what does not depend on the point; choices apart
  std::vector<uint32_t> stale_base;  // slots
  // Of the dimensions whose kernels are normal, as kernels::Normals has them.
  size_t normal_count = 0;
  std::vector<double> rows;
  std::vector<const float*> scale, offset;

  bool before(const Dimension& d, uint32_t a, double mu, uint32_t key) const {
    return d.mu[a] < mu ||
           (d.mu[a] == mu && place_among_equals(key_of[a]) < place_among_equals(key));
  }
  size_t position(const Dimension& d, double mu, uint32_t key) const {
    const auto at =
        std::lower_bound(d.order.begin(), d.order.end(), 0u,
                         [&](uint32_t slot, uint32_t) { return before(d, slot, mu, key); });
    return static_cast<size_t>(at - d.order.begin());
  }

  uint32_t take_slot() {
    if (!free_slots.empty()) {
      const uint32_t slot = free_slots.back();
      free_slots.pop_back();
      return slot;
    }
    const auto slot = static_cast<uint32_t>(slot_count++);
    key_of.resize(slot_count);
    weight.resize(slot_count, 0);
    base.resize(slot_count, minus_infinity);
    rows.resize(slot_count * 2 * normal_count);
    for (Dimension& d : dimensions) {
      if (d.categorical()) {
        d.choice.resize(slot_count, -1);
        continue;
      }
      d.mu.resize(slot_count);
      d.sigma.resize(slot_count, 1);
      d.inverse.resize(slot_count);
      if (slot_count > d.scale.size()) {
        d.scale.resize(d.scale.size() + kernels::padding);
        d.offset.resize(d.scale.size());
      }
      d.norm.resize(slot_count);
      d.tails.resize(slot_count);
      if (d.tabular()) d.cell.resize(slot_count);
    }
    return slot;
  }

  void erase(uint32_t slot) {
    for (Dimension& d : dimensions) {
      if (d.categorical()) continue;
      const size_t at = position(d, d.mu[slot], key_of[slot]);
      d.order.erase(d.order.begin() + static_cast<std::ptrdiff_t>(at));
      if (at > 0) d.touched.push_back(d.order[at - 1]);
      if (at < d.order.size()) d.touched.push_back(d.order[at]);
      d.inverse[slot] = 0;
      d.scale[slot] = d.offset[slot] = 0;
    }
    weight[slot] = 0;
    base[slot] = minus_infinity;
    free_slots.push_back(slot);
  }

  void set_kernel(Dimension& d, uint32_t slot, double sigma) {
    d.sigma[slot] = sigma;
    d.inverse[slot] = root_half / sigma;
    stale_base.push_back(slot);
    const double mu = d.mu[slot];
    d.scale[slot] = static_cast<float>(d.inverse[slot] * (d.high - d.low));
    d.offset[slot] = static_cast<float>(d.inverse[slot] * (mu - d.low));
    if (d.continuous()) {
      double* row = rows.data() + slot * 2 * normal_count + d.normal;
      row[0] = mu;
      row[normal_count] = d.inverse[slot];
    }
    if (d.tabular()) {
      const auto [found, first] =
          d.cells.emplace(std::make_pair(mu, sigma), static_cast<uint32_t>(d.cells.size()));
      if (first)
        d.table.resize(d.table.size() + static_cast<size_t>(d.distribution->count()),
                       std::numeric_limits<double>::quiet_NaN());
      d.cell[slot] = found->second;
    }
    const double low = (d.low - mu) / sigma, high = (d.high - mu) / sigma;
    d.tails[slot] = normal_tails(low, high);
    d.norm[slot] = normal_log_mass(low, high, d.tails[slot]);
    if (!d.stepped()) d.norm[slot] += std::log(sigma) + log_root_two_pi;
  }

  double deviation(const Dimension& d, size_t at) const {
    const size_t m = d.order.size();
    const double mu = d.mu[d.order[at]];
    const double left = mu - (at > 0 ? d.mu[d.order[at - 1]] : d.low);
    const double right = (at + 1 < m ? d.mu[d.order[at + 1]] : d.high) - mu;
    double sigma = std::max(left, right);
    if (m >= 2 && at == 0) sigma = right;
    if (m >= 2 && at + 1 == m) sigma = left;
    const double range = d.high - d.low;
    return std::clamp(sigma, range / resolution(m), range);
  }

  // Of the line, by so many observations: it grows until it has settled.
  static double resolution(size_t m) { return std::min(100.0, static_cast<double>(m + 2)); }

  void update_deviations(Dimension& d) {
    const size_t m = d.order.size();
    // The smallest deviation depends on their number until it has settled.
    const bool same = made && m == settled_at;
    if (!same && (m < settled || settled_at < settled)) {
      if (smoothing > 0 && d.tabular()) {
        const double count = d.distribution->count();
        d.even_share = smoothing * count / (count + resolution(m));
      }
      d.cells.clear();
      d.table.clear();
      set_kernel(d, prior, d.high - d.low);
      for (size_t at = 0; at < m; ++at) set_kernel(d, d.order[at], deviation(d, at));
    } else {
      for (const uint32_t slot : d.touched) {
        if (d.inverse[slot] == 0 && d.order.empty()) continue;
        const size_t at = position(d, d.mu[slot], key_of[slot]);
        if (at >= m || d.order[at] != slot) continue;  // taken out meanwhile
        const double sigma = deviation(d, at);
        if (sigma != d.sigma[slot] || d.inverse[slot] == 0) set_kernel(d, slot, sigma);
      }
    }
    d.touched.clear();
  }

  void update_weights() {
    const size_t m = keys.size();
    const std::vector<double> weights = even ? std::vector<double>(m, 1.0) : recency_weights(m);
    double sum = weight[prior] = 1;
    for (size_t i = 0; i < m; ++i) {
      weight[slots[i]] = weights[i];
      sum += weights[i];
    }
    total = sum;
    least_weight = m > 0 ? std::min(1.0, weights[0]) : 1;  // the oldest's
  }

  void update_bases() {
    for (const uint32_t slot : stale_base) {
      if (weight[slot] == 0) continue;  // taken out meanwhile
      double sum = 0;
      for (const Dimension& d : dimensions)
        if (!d.categorical() && !d.tabular()) sum -= d.norm[slot];
      base[slot] = sum;
    }
    stale_base.clear();
    scale.clear();
    offset.clear();
    for (const Dimension& d : dimensions) {
      if (!d.continuous()) continue;
      scale.push_back(d.scale.data());
      offset.push_back(d.offset.data());
    }
  }

  // What all kernels give to choices that are not theirs.
  void begin_terms(double* terms) const {
    std::copy(base.begin(), base.end(), terms);
    const double n = static_cast<double>(keys.size() + 1);
    for (const Dimension& d : dimensions) {
      if (!d.categorical()) continue;
      const double choices = d.distribution->count();
      const double miss = std::log((1 / n) / (1 + choices / n));
      for (size_t slot = 1; slot < slot_count; ++slot) terms[slot] += miss;
      terms[prior] -= std::log(choices);
    }
  }

  // Of one that is not normal.
  void add_dimension(const Dimension& d, double value, double* terms) const {
    if (d.categorical()) {
      const double n = static_cast<double>(keys.size() + 1);
      const double gain = std::log((1 / n + 1) / (1 / n));
      kernels::add_matches(d.choice.data(), static_cast<int32_t>(value), gain, terms, slot_count);
    } else if (d.tabular()) {
      const auto width = static_cast<size_t>(d.distribution->count());
      const auto column = static_cast<size_t>(d.distribution->index_of(value));
      for (size_t slot = 0; slot < slot_count; ++slot) {
        if (terms[slot] == minus_infinity) continue;
        double& known = d.table[d.cell[slot] * width + column];
        if (std::isnan(known)) known = d.mass(d.mu[slot], d.sigma[slot], d.norm[slot], value);
        terms[slot] += known;
      }
    } else {
      for (size_t slot = 0; slot < slot_count; ++slot)
        if (terms[slot] != minus_infinity)
          terms[slot] += d.mass(d.mu[slot], d.sigma[slot], 0, value);
    }
  }
};

ParzenEstimator::ParzenEstimator(const Space& space, std::vector<size_t> parameters, bool even,
                                 double smoothing)
    : impl_(std::make_unique<Impl>()) {
  impl_->space = &space;
  impl_->parameters = std::move(parameters);
  impl_->even = even;
  impl_->smoothing = smoothing;
  impl_->key_of = {0};
  impl_->weight = {1};
  impl_->base = {0};
  impl_->stale_base = {prior};
  for (const size_t index : impl_->parameters) {
    Dimension d;
    d.distribution = &space.parameters()[index].distribution;
    if (d.categorical()) {
      d.choice = {-1};
    } else {
      d.low = d.distribution->line_low();
      d.high = d.distribution->line_high();
      d.mu = {(d.low + d.high) / 2};
      d.sigma = d.inverse = d.norm = {0};
      d.scale.resize(kernels::padding);
      d.offset.resize(kernels::padding);
      if (d.continuous()) d.normal = impl_->normal_count++;
      d.tails.resize(1);
      if (d.tabular()) d.cell = {0};
    }
    impl_->dimensions.push_back(std::move(d));
  }
  impl_->rows.resize(2 * impl_->normal_count);
  finish();
}

ParzenEstimator::~ParzenEstimator() = default;
ParzenEstimator::ParzenEstimator(ParzenEstimator&&) noexcept = default;
ParzenEstimator& ParzenEstimator::operator=(ParzenEstimator&&) noexcept = default;

const std::vector<size_t>& ParzenEstimator::parameters() const { return impl_->parameters; }
size_t ParzenEstimator::kernels() const { return impl_->keys.size() + 1; }

std::vector<uint32_t> ParzenEstimator::difference(std::span<const uint32_t> wanted) {
  Impl& in = *impl_;
  std::vector<uint32_t> added, keys, slots;
  const size_t shorter = std::min(wanted.size(), in.keys.size());
  const auto same =
      std::mismatch(in.keys.begin(), in.keys.begin() + static_cast<std::ptrdiff_t>(shorter),
                    wanted.begin())
          .first;
  const auto start = static_cast<size_t>(same - in.keys.begin());
  size_t w = start, h = start;
  while (w < wanted.size() || h < in.keys.size()) {
    if (h == in.keys.size() || (w < wanted.size() && wanted[w] < in.keys[h])) {
      added.push_back(wanted[w++]);
    } else if (w == wanted.size() || in.keys[h] < wanted[w]) {
      in.erase(in.slots[h++]);
    } else {
      keys.push_back(in.keys[h]);
      slots.push_back(in.slots[h]);
      ++w, ++h;
    }
  }
  in.keys.resize(start);
  in.slots.resize(start);
  in.keys.insert(in.keys.end(), keys.begin(), keys.end());
  in.slots.insert(in.slots.end(), slots.begin(), slots.end());
  return added;
}

void ParzenEstimator::insert(uint32_t key, const Point& point) {
  Impl& in = *impl_;
  const uint32_t slot = in.take_slot();
  in.key_of[slot] = key;
  in.stale_base.push_back(slot);
  const auto at = std::lower_bound(in.keys.begin(), in.keys.end(), key);
  in.slots.insert(in.slots.begin() + (at - in.keys.begin()), slot);
  in.keys.insert(at, key);
  for (size_t i = 0; i < in.dimensions.size(); ++i) {
    Dimension& d = in.dimensions[i];
    const double value = point[in.parameters[i]];
    if (d.categorical()) {
      d.choice[slot] = static_cast<int32_t>(value);
      continue;
    }
    d.mu[slot] = d.distribution->to_line(value);
    d.inverse[slot] = 0;
    const size_t place = in.position(d, d.mu[slot], key);
    d.order.insert(d.order.begin() + static_cast<std::ptrdiff_t>(place), slot);
    for (size_t near = place > 0 ? place - 1 : 0; near < std::min(place + 2, d.order.size());
         ++near)
      d.touched.push_back(d.order[near]);
  }
}

void ParzenEstimator::finish() {
  Impl& in = *impl_;
  for (Dimension& d : in.dimensions)
    if (!d.categorical()) in.update_deviations(d);
  in.settled_at = in.keys.size();
  in.made = true;
  in.update_weights();
  in.update_bases();
}

std::vector<double> ParzenEstimator::weights() const {
  std::vector<double> all;
  for (const uint32_t slot : impl_->slots) all.push_back(impl_->weight[slot] / impl_->total);
  all.push_back(impl_->weight[prior] / impl_->total);
  return all;
}

ParzenEstimator::Kernel ParzenEstimator::kernel(size_t index, size_t dimension) const {
  const Impl& in = *impl_;
  const bool is_prior = index == in.keys.size();
  const uint32_t slot = is_prior ? prior : in.slots[index];
  const Dimension& d = in.dimensions[dimension];
  if (!d.categorical()) return {d.mu[slot], d.sigma[slot], {}};
  const auto choices = static_cast<size_t>(d.distribution->count());
  const double n = static_cast<double>(in.keys.size() + 1), c = static_cast<double>(choices);
  Kernel kernel;
  kernel.probabilities.assign(choices, is_prior ? 1 / c : (1 / n) / (1 + c / n));
  if (!is_prior)
    kernel.probabilities[static_cast<size_t>(d.choice[slot])] = (1 / n + 1) / (1 + c / n);
  return kernel;
}

void ParzenEstimator::log_density(std::span<const Point> points, std::span<double> out) const {
  evaluate(points, nullptr, out);
}

void ParzenEstimator::log_density(std::span<const Point> points, std::span<const double> wanted,
                                  std::span<double> out) const {
  evaluate(points, wanted.data(), out);
}

void ParzenEstimator::evaluate(std::span<const Point> points, const double* wanted,
                               std::span<double> out) const {
  const Impl& in = *impl_;
  std::vector<double> terms(in.slot_count), x;
  std::vector<float> shares;
  x.reserve(points.size() * in.normal_count);
  shares.reserve(points.size() * in.normal_count);
  in.begin_terms(terms.data());
  // Where all kernels are normal, all points begin with the same terms.
  const size_t stride = in.normal_count == in.dimensions.size() ? 0 : in.slot_count;
  if (stride > 0) {
    terms.resize(points.size() * stride);
    for (size_t p = 1; p < points.size(); ++p)
      std::copy_n(terms.begin(), stride, terms.begin() + static_cast<std::ptrdiff_t>(p * stride));
  }
  for (size_t p = 0; p < points.size(); ++p)
    for (size_t i = 0; i < in.dimensions.size(); ++i) {
      const Dimension& d = in.dimensions[i];
      if (!d.continuous()) {
        in.add_dimension(d, points[p][i], terms.data() + p * stride);
        continue;
      }
      x.push_back(d.distribution->to_line(points[p][i]));
      shares.push_back(static_cast<float>((x.back() - d.low) / (d.high - d.low)));
    }
  const kernels::Contest contest{wanted, std::log(in.least_weight)};
  kernels::log_sums({in.normal_count, in.rows.data(), in.scale.data(), in.offset.data()}, x.data(),
                    shares.data(), points.size(), terms.data(), stride, in.weight.data(),
                    in.slot_count, wanted ? &contest : nullptr, out.data());
  const double log_total = std::log(in.total);
  for (size_t p = 0; p < points.size(); ++p) out[p] -= log_total;
}

Point ParzenEstimator::draw(Random& random) const {
  const Impl& in = *impl_;
  // The kernel by its weight, the prior's last.
  double left = random.uniform() * in.total;
  size_t index = 0;
  while (index < in.keys.size() && left >= in.weight[in.slots[index]])
    left -= in.weight[in.slots[index++]];
  const uint32_t slot = index == in.keys.size() ? prior : in.slots[index];
  const double n = static_cast<double>(in.keys.size() + 1);
  Point point;
  for (const Dimension& d : in.dimensions) {
    double q = random.uniform();
    if (q < d.even_share) {
      const double count = d.distribution->count();
      point.push_back(
          d.distribution->nth(std::min(std::floor(q / d.even_share * count), count - 1)));
      continue;
    }
    if (d.even_share > 0) q = (q - d.even_share) / (1 - d.even_share);
    if (d.categorical()) {
      // The kernel's own choice has all but an even share of what is left.
      const double choices = d.distribution->count(), even = 1 / (1 + choices / n) / n;
      const double own = 1 / (1 + choices / n);
      const bool of_kernel = slot != prior && q < own;
      const double other = slot == prior ? q * choices : (q - own) / even;
      point.push_back(of_kernel ? d.choice[slot] : std::min(std::floor(other), choices - 1));
      continue;
    }
    const double mu = d.mu[slot], sigma = d.sigma[slot];
    const double x =
        truncated_normal_quantile(q, (d.low - mu) / sigma, (d.high - mu) / sigma, d.tails[slot]);
    point.push_back(d.distribution->from_line(mu + sigma * x));
  }
  return point;
}

}  // namespace mase::search
