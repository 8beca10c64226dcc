#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# An outside project builds against the installed package, with CMake and with pkg-config.
set -euo pipefail
grep -q '^MASE_SANITIZE:STRING=.' "$MASE_BUILD/CMakeCache.txt" && exit 77  # needs plain objects
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
prefix=$scratch/prefix
# Only what the install rules list; the build is as it is.
cmake --install "$MASE_BUILD" --prefix "$prefix" >"$scratch/install.log" 2>&1 ||
  { cat "$scratch/install.log"; exit 1; }

mkdir "$scratch/outside"
cat >"$scratch/outside/CMakeLists.txt" <<'TEXT'
cmake_minimum_required(VERSION 3.25)
project(outside LANGUAGES CXX)
find_package(mase 0.1 REQUIRED)
add_executable(outside outside.cpp)
target_link_libraries(outside PRIVATE mase::mase)
TEXT
cat >"$scratch/outside/outside.cpp" <<'TEXT'
#include <cstdio>

#include "mase/ir/evaluate.h"
#include "mase/models/model.h"

int main() {
  const mase::Graph graph = mase::make_model("jsc-toy");
  const auto out = mase::evaluate(graph, {mase::Array({2, 16}, 0.5)});
  std::printf("%lld parameters, %s\n", static_cast<long long>(graph.parameter_count()),
              mase::shape_text(out[0].shape).c_str());
}
TEXT
cd "$scratch/outside"
cmake -G Ninja -S . -B build -DCMAKE_PREFIX_PATH="$prefix" >log 2>&1 &&
  cmake --build build >>log 2>&1 || { cat log; exit 1; }
[[ $(build/outside) == "327 parameters, [2, 5]" ]]

export PKG_CONFIG_PATH=$prefix/lib/pkgconfig:$prefix/lib/$(uname -m)-linux-gnu/pkgconfig
library=$(pkg-config --variable=libdir mase)
g++ -O0 outside.cpp $(pkg-config --cflags --libs mase) -Wl,-rpath,"$library" -o by_pkg_config
[[ $(./by_pkg_config) == "327 parameters, [2, 5]" ]]

"$prefix/bin/ch" summary jsc-tiny | grep -q "Total params: 117"
