#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs a command so that the thread sanitizer understands OpenMP: libomp is not instrumented, and
# LLVM's Archer tells the sanitizer about its barriers and tasks.
set -euo pipefail
export OMP_TOOL_LIBRARIES=/usr/lib/llvm-14/lib/libarcher.so
export TSAN_OPTIONS="ignore_noninstrumented_modules=1 halt_on_error=1 ${TSAN_OPTIONS:-}"
exec "$@"
