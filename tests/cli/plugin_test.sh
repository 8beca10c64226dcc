#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A shared library in C++ that registers a pass is loaded by --plugin: its pass runs among the program's own and has
# its arguments checked. What is no such library is one line.
set -euo pipefail
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cached() { sed -n "s/^$1:[A-Z]*=//p" "$MASE_BUILD/CMakeCache.txt"; }
if [[ -n $(cached MASE_SANITIZE) ]]; then
  echo "skipped: the library is built without sanitizers"
  exit 77
fi
cd "$scratch"
cat >count_ops.cpp <<'CODE'
#include "mase/passes/pass.h"

namespace count_ops {
namespace {

mase::PassResult run(mase::Graph& graph, const mase::Value& args, mase::PassContext&) {
  int64_t count = 0;
  for (const auto& [path, module] : graph.modules()) count += module.op == args["op"].as_string();
  return {mase::Dict{{"count", count}}, /*changed=*/false};
}

const mase::Register<mase::PassRecord> registered{{
    .name = "count_ops",
    .pass_kind = mase::PassKind::analysis,
    .summary = "how many layers of a kind there are",
    .schema = {{{.name = "op", .type = mase::FieldType::text, .default_value = "relu"}}},
    .run = run,
}};

}  // namespace
}  // namespace count_ops
CODE
printf 'model = "jsc-toy"\n[passes.count_ops]\nop = "linear"\n' >passes.toml
"$(cached CMAKE_CXX_COMPILER)" -std=c++20 -O0 -shared -fPIC -I"$MASE_SOURCE/src" count_ops.cpp -o libcount_ops.so \
  -L"$MASE_BUILD/lib" -lmase -lfmt
"$MASE_CH" transform --config passes.toml --plugin ./libcount_ops.so --project run >log 2>&1 || { cat log; exit 1; }
tr -d ' \n' <mase_output/run/software/transform/results.json | grep -q '"pass":"count_ops".*"count":3' ||
  { cat mase_output/run/software/transform/results.json; exit 1; }

refused() {  # by one line that has these words
  local words=$1
  shift
  if "$MASE_CH" transform "$@" >log 2>&1; then echo "accepted: $*"; exit 1; fi
  [[ $(wc -l <log) == 1 ]] && grep -q "$words" log || { echo "expected '$words':"; cat log; exit 1; }
}
refused "count_ops" --config passes.toml
sed 's/op =/opp =/' passes.toml >wrong.toml
refused "opp" --config wrong.toml --plugin libcount_ops.so
refused "cannot be loaded" --config passes.toml --plugin passes.toml
refused "there is no file" --config passes.toml --plugin missing.so
