# shellcheck shell=bash
# Sourced: sets `best` to the best instruction set that this machine has and kernels are compiled for
# (as MASE_INSTRUCTION_SETS names it), to nothing where that is not known.
best=""
line=""
while read -r line && [[ $line != flags* ]]; do :; done 2>/dev/null </proc/cpuinfo || true
line=" $line "
if [[ $line == *" sse4_1 "* && $line == *" sse4_2 "* ]]; then best=SSE4; fi
if [[ $line == *" avx2 "* && $line == *" fma "* && $line == *" bmi2 "* && $line == *" f16c "* ]]; then best=AVX2; fi
if [[ $best == AVX2 && $line == *" avx512f "* && $line == *" avx512vl "* && $line == *" avx512dq "* &&
  $line == *" avx512bw "* ]]; then best=AVX3; fi
