#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Versions that are too old are named when configuring, before anything is compiled.
set -euo pipefail
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

cat >"$scratch/g++" <<'TEXT'
#!/bin/bash
exec c++ -U__GNUC__ -D__GNUC__=11 "$@"
TEXT
chmod +x "$scratch/g++"
mkdir "$scratch/fmt" "$scratch/toml"
echo >"$scratch/fmt/fmt-config.cmake"
cat >"$scratch/fmt/fmt-config-version.cmake" <<'TEXT'
set(PACKAGE_VERSION 8.1.1)
if(PACKAGE_VERSION VERSION_LESS PACKAGE_FIND_VERSION)
  set(PACKAGE_VERSION_COMPATIBLE FALSE)
else()
  set(PACKAGE_VERSION_COMPATIBLE TRUE)
endif()
TEXT
printf 'Name: tomlplusplus\nDescription: old\nVersion: 3.1.0\n' >"$scratch/toml/tomlplusplus.pc"

refused() {  # PATTERN OPTIONS...: configuring with these ends with a line of this pattern
  local pattern=$1
  shift
  rm -rf "$scratch/build"
  if cmake -S "$MASE_SOURCE" -B "$scratch/build" -G Ninja "$@" >"$scratch/log" 2>&1; then
    echo "not refused: $pattern" >&2
    exit 1
  fi
  tr -s ' \n' ' ' <"$scratch/log" | grep -q "$pattern" || { cat "$scratch/log" >&2; exit 1; }
}
refused "g++ is GNU 11.* g++ 12, clang 14 or newer is needed" -DCMAKE_CXX_COMPILER="$scratch/g++"
refused "fmt 9.1 or newer is needed; found is 8.1.1" -Dfmt_DIR="$scratch/fmt" \
  -DCMAKE_FIND_USE_CMAKE_SYSTEM_PATH=OFF -DCMAKE_FIND_USE_SYSTEM_ENVIRONMENT_PATH=OFF \
  -DPKG_CONFIG_EXECUTABLE="$(command -v pkg-config)" -DCMAKE_MAKE_PROGRAM="$(command -v ninja)" \
  -DCMAKE_C_COMPILER="$(command -v cc)" -DCMAKE_CXX_COMPILER="$(command -v c++)"  # the machine's fmt is out of sight
PKG_CONFIG_PATH=$scratch/toml refused "tomlplusplus>=3.3.*3.1.0"
