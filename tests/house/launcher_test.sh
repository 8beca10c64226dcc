#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The launcher on a small stand-in for the project: builds once, rebuilds when sources changed or
# files came and went, shows the log's end on failure, lets two first calls wait for each other, and
# installs nothing after that.
set -euo pipefail
command -v ninja >/dev/null && command -v cmake >/dev/null || exit 77
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
tree=$scratch/tree
mkdir -p "$tree/src" "$tree/cmake" "$tree/scripts"
cp "$MASE_SOURCE/ch" "$tree/"
cp "$MASE_SOURCE"/scripts/{build.sh,install_packages.sh} "$tree/scripts/"
echo 'best=AVX2' >"$tree/scripts/instruction_set.sh"
echo "build bash" >"$tree/scripts/packages.txt"
cat >"$tree/CMakeLists.txt" <<'TEXT'
cmake_minimum_required(VERSION 3.25)
project(stand_in LANGUAGES C)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/*.c)
add_executable(ch ${sources})
TEXT
cat >"$tree/CMakePresets.json" <<'TEXT'
{"version": 6, "configurePresets": [{"name": "release", "generator": "Ninja",
 "binaryDir": "${sourceDir}/build/release"}]}
TEXT
program() { printf '#include <stdio.h>\nint main(int c, char** v) { for (int i = 1; i < c; ++i) printf("%%s|", v[i]); puts("%s"); return 7; }\n' "$1" >"$tree/src/main.c"; }
run() {
  set +e
  output=$("$tree/ch" "$@" 2>"$scratch/err")
  code=$?
  set -e
}
fail() { echo "$1"; cat "$scratch/err"; exit 1; }

program one
(cd / && "$tree/ch" first >"$scratch/a" 2>&1 || true) & a=$!
(cd / && "$tree/ch" second >"$scratch/b" 2>&1 || true) & b=$!
wait $a; wait $b
grep -q "first|one" "$scratch/a" && grep -q "second|one" "$scratch/b" || fail "two first calls"

run "a b" --flag
[[ $output == "a b|--flag|one" && $code == 7 ]] || fail "arguments and exit code: $output $code"
[[ ! -s $scratch/err ]] || fail "a later call printed something"

ln -s "$tree/ch" "$scratch/link"
[[ $("$scratch/link" x || true) == "x|one" ]] || fail "through a link"

sleep 0.02
program two
run
[[ $output == two ]] || fail "changed source: $output"

sleep 0.02
echo 'int extra(void) { return 1; }' >"$tree/src/extra.c"
run
[[ $output == two ]] && grep -q "building" "$scratch/err" || fail "added source"
sleep 0.02
rm "$tree/src/extra.c"
run
[[ $output == two ]] && grep -q "building" "$scratch/err" || fail "removed source"

sleep 0.02
echo 'this is no C' >"$tree/src/main.c"
run
[[ $code == 1 && -z $output ]] && grep -q "the end of" "$scratch/err" && grep -q "main.c" "$scratch/err" ||
  fail "failed build"
program three
run
[[ $output == three ]] || fail "after the repair"

# A machine that can do more than those it was built for is built for, too; then both run it as it is.
sets() { grep -h "^MASE_INSTRUCTION_SETS" "$tree/build/release/CMakeCache.txt" | sed 's/.*=//'; }
[[ $(sets) == "SSE4;AVX2" ]] || fail "instruction sets of the first build: $(sets)"
echo 'best=AVX3' >"$tree/scripts/instruction_set.sh"
run
[[ $output == three && $(sets) == "SSE4;AVX2;AVX3" ]] || fail "another machine: $output $(sets)"
for best in AVX2 AVX3 SSE4 ""; do
  echo "best=$best" >"$tree/scripts/instruction_set.sh"
  run
  [[ $output == three && ! -s $scratch/err ]] || fail "built for both: $best"
done

# A copied checkout builds its own sources, though its build folder names the original's.
cp -a "$tree" "$scratch/copy"
sleep 0.02
sed -i 's/three/copied/' "$scratch/copy/src/main.c"
output=$("$scratch/copy/ch" 2>"$scratch/err" || true)
[[ $output == copied ]] || fail "copied checkout: $output"
run
[[ $output == three ]] || fail "original after the copy: $output"
# So does a moved one.
mv "$scratch/copy" "$scratch/moved"
sleep 0.02
sed -i 's/copied/moved/' "$scratch/moved/src/main.c"
output=$("$scratch/moved/ch" 2>"$scratch/err" || true)
[[ $output == moved ]] || fail "moved checkout: $output"

# Without root and sudo: the line to type, and nothing else happens.
echo "build mase-no-such-package" >>"$tree/scripts/packages.txt"
mkdir "$scratch/bin"
for tool in bash dpkg-query id cat env dirname grep; do ln -s "$(command -v $tool)" "$scratch/bin/$tool"; done
printf '#!/bin/bash\necho 1000\n' >"$scratch/bin/id.new" && chmod +x "$scratch/bin/id.new"
mv "$scratch/bin/id.new" "$scratch/bin/id"
if PATH=$scratch/bin "$tree/scripts/install_packages.sh" build 2>"$scratch/err"; then fail "no refusal"; fi
grep -q "sudo apt-get install -y --no-install-recommends mase-no-such-package" "$scratch/err" ||
  fail "the line to type"

# Commands of hardware install nothing, whatever is missing; --install says what to install.
mkdir "$scratch/few"
for tool in bash find readlink env; do ln -s "$(command -v $tool)" "$scratch/few/$tool"; done
printf '#!/bin/bash\necho "installs $*"\n' >"$tree/scripts/install_packages.sh"
for words in "emit x" "simulate x" "synth x" "synth x --place ice40" "shrink x --designs d"; do
  output=$(PATH=$scratch/few "$tree/ch" $words 2>"$scratch/err" || true)
  [[ $output == "${words// /|}|three" && ! -s $scratch/err ]] || fail "$words: $output"
done
[[ $(PATH=$scratch/few "$tree/ch" --install hardware 2>&1) == "installs hardware" ]] || fail "--install hardware"
[[ $(PATH=$scratch/few "$tree/ch" --install place 2>&1) == "installs place" ]] || fail "--install place"
if PATH=$scratch/few "$tree/ch" --install anything >"$scratch/err" 2>&1; then fail "--install anything"; fi
