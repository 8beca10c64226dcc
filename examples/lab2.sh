#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Lab 2 from the command line: examples/lab2.sh [MODEL [CHECKPOINT]]
# CH names the program if it is not on the path.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
ch=${CH:-ch}
model=${1:-jsc-tiny}
load=()
if [ $# -gt 1 ]; then load=(--load "$2"); fi

# What would happen, before anything does.
"$ch" transform "$model" --config "$here/lab2.toml" "${load[@]}" --dry-run

# All passes, in the order of the file.
"$ch" transform "$model" --config "$here/lab2.toml" "${load[@]}"

# Single passes.
"$ch" pass report_graph "$model"
"$ch" pass calculate_flops "$model" --set batch_size=8
