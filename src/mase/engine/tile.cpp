// SPDX-License-Identifier: Apache-2.0
#include "mase/engine/tile.h"

#include <algorithm>
#include <bit>
#include <map>
#include <tuple>

#include "mase/base/error.h"
#include "mase/engine/kernels/kernels.h"

namespace mase::engine {

TileProgram::TileProgram(const Expr& expr, int operands) : operands_(operands) {
  // Constants first, so that their registers are known: every pass below sees the same order.
  const auto constant = [&](double value) {
    const auto number = static_cast<float>(value);
    for (size_t i = 0; i < constants_.size(); ++i)
      if (std::bit_cast<uint32_t>(constants_[i]) == std::bit_cast<uint32_t>(number))
        return static_cast<int>(i);
    constants_.push_back(number);
    return static_cast<int>(constants_.size()) - 1;
  };
  const auto collect = [&](auto& self, const Expr& e) -> void {
    if (e.node().op == ScalarOp::constant) constant(e.node().constant);
    for (const Expr& input : e.node().inputs) self(self, input);
  };
  collect(collect, expr);

  using Key = std::tuple<ScalarOp, int, int, int>;
  std::map<Key, int> known;
  std::map<const Expr::Node*, int> seen;
  int next = 0;
  const auto emit = [&](auto& self, const Expr& e) -> int {
    const Expr::Node& node = e.node();
    if (node.op == ScalarOp::operand) return node.operand;
    if (node.op == ScalarOp::constant) return operands_ + constant(node.constant);
    if (const auto found = seen.find(&node); found != seen.end()) return found->second;
    int in[3] = {-1, -1, -1};
    for (size_t i = 0; i < node.inputs.size(); ++i) in[i] = self(self, node.inputs[i]);
    const Key key{node.op, in[0], in[1], in[2]};
    const auto [place, fresh] = known.try_emplace(key, 0);
    if (fresh) {
      place->second = operands_ + static_cast<int>(constants_.size()) + next++;
      code_.push_back({node.op, in[0], in[1], in[2], place->second});
    }
    return seen[&node] = place->second;
  };
  result_ = emit(emit, expr);
  if (code_.empty()) {  // a bare operand or constant: copied
    code_.push_back(
        {ScalarOp::operand, result_, -1, -1, operands_ + static_cast<int>(constants_.size())});
    result_ = code_.back().out;
  }

  // Temporaries share registers once their last reader is past.
  const int first = operands_ + static_cast<int>(constants_.size());
  std::map<int, size_t> last;
  for (size_t i = 0; i < code_.size(); ++i)
    for (const int in : {code_[i].a, code_[i].b, code_[i].c}) last[in] = i;
  std::map<int, int> placed;
  std::vector<int> free;
  for (size_t i = 0; i < code_.size(); ++i) {
    Instruction& instruction = code_[i];
    std::vector<int> released;
    for (int* in : {&instruction.a, &instruction.b, &instruction.c}) {
      if (*in < first) continue;
      if (last[*in] == i && std::find(released.begin(), released.end(), *in) == released.end())
        released.push_back(*in);
      *in = placed.at(*in);
    }
    int target;
    if (free.empty()) {
      target = first + temporaries_++;
    } else {
      target = free.back();
      free.pop_back();
    }
    placed[instruction.out] = target;
    instruction.out = target;
    for (const int in : released) free.push_back(placed.at(in));
  }
  result_ = code_.back().out;
}

int64_t TileProgram::workspace(int64_t n) const {
  const int64_t length = (std::min(n, tile) + 15) / 16 * 16;
  return length * (operands_ + static_cast<int64_t>(constants_.size()) + temporaries_);
}

void TileProgram::prepare(float* workspace, int64_t n) const {
  const int64_t length = (std::min(n, tile) + 15) / 16 * 16;
  for (size_t i = 0; i < constants_.size(); ++i)
    std::fill_n(workspace + (operands_ + static_cast<int64_t>(i)) * length, length, constants_[i]);
}

void TileProgram::run(const float* const* operands, const bool* scalar, float* out, int64_t n,
                      float* workspace, int64_t capacity) const {
  const int64_t length = (std::min(capacity, tile) + 15) / 16 * 16;
  for (int i = 0; i < operands_; ++i)
    if (scalar[i]) std::fill_n(workspace + i * length, std::min(n, length), *operands[i]);
  for (int64_t begin = 0; begin < n; begin += length) {
    const int64_t count = std::min(length, n - begin);
    const auto at = [&](int index) -> const float* {
      if (index < 0) return nullptr;
      if (index < operands_ && !scalar[index]) return operands[index] + begin;
      return workspace + index * length;
    };
    for (size_t i = 0; i < code_.size(); ++i) {
      const Instruction& instruction = code_[i];
      float* target = i + 1 == code_.size() ? out + begin : workspace + instruction.out * length;
      kernels::apply(instruction.op, at(instruction.a), at(instruction.b), at(instruction.c),
                     target, count);
    }
  }
}

}  // namespace mase::engine
