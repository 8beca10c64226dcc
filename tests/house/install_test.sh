#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# An outside project, tests/house/outside, builds against the installed package with nothing but the
# public headers, runs lab 2, catches errors, and runs two experiments in two threads; built by the
# compiler and with the sanitizers of this build. Without sanitizers by pkg-config too.
set -euo pipefail
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
prefix=$scratch/prefix
# Only what the install rules list; the build is as it is.
cmake --install "$MASE_BUILD" --prefix "$prefix" >"$scratch/install.log" 2>&1 ||
  { cat "$scratch/install.log"; exit 1; }
cached() { sed -n "s/^$1:[A-Z]*=//p" "$MASE_BUILD/CMakeCache.txt"; }
sanitizers=$(cached MASE_SANITIZE)

cp -r "$MASE_SOURCE/tests/house/outside" "$scratch/outside"
cp "$MASE_SOURCE/examples/lab2.cpp" "$scratch/outside"
cd "$scratch/outside"
# A header that is not in the list, nor included by one that is, is not installed.
while read -r header; do
  [[ -e $prefix/include/$header ]] || { echo "$header is public, but not installed" >&2; exit 1; }
done < <(grep '^mase/' "$MASE_SOURCE/src/mase/public_headers.txt")
[[ ! -e $prefix/include/mase/cli && ! -e $prefix/include/mase/io/torch/pickle_machine.h ]]
# Nothing of other libraries is exported.
foreign=$(nm -D --defined-only "$prefix"/lib/*/libmase.so "$prefix"/lib/libmase.so 2>/dev/null |
  awk 'NF == 3 && $3 !~ /4mase|^MASE_|san_/ {print $3}' || true)
[[ -z $foreign ]] || { echo "exported, but not ours: $foreign" >&2; exit 1; }

cmake -G Ninja -S . -B build -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_CXX_COMPILER="$(cached CMAKE_CXX_COMPILER)" \
  -DCMAKE_CXX_FLAGS="${sanitizers:+-fsanitize=$sanitizers}" >log 2>&1 &&
  cmake --build build >>log 2>&1 || { cat log; exit 1; }
[[ $(build/readme) == "327 parameters, [2, 5]" ]]
build/experiments >experiments.log
diff - experiments.log <<'TEXT'
InternalError: the program goes on
Error: unknown model 'jsc-tyo'; did you mean 'jsc-toy'? (or the path of a .toml file)
two experiments in two threads: the same bits as one after the other
TEXT
build/lab2 jsc-tiny >lab2.log
"$MASE_BUILD"/bin/lab2 jsc-tiny | diff - lab2.log
grep -q 'difference found at name: seq_blocks_2' lab2.log
"$prefix/bin/ch" summary jsc-tiny | grep -q "Total params: 117"
[[ -s $prefix/share/man/man1/ch.1 && -s $prefix/share/bash-completion/completions/ch ]]
[[ -z $sanitizers ]] || exit 0

export PKG_CONFIG_PATH=$prefix/lib/pkgconfig:$prefix/lib/$(uname -m)-linux-gnu/pkgconfig
library=$(pkg-config --variable=libdir mase)
g++ -O0 readme.cpp $(pkg-config --cflags --libs mase) -Wl,-rpath,"$library" -o by_pkg_config
[[ $(./by_pkg_config) == "327 parameters, [2, 5]" ]]
