#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Search files as MASE's users write them, each from one command: strategies and samplers under all
# their names, seeds of other networks and of the other way to name layers, a space of students' own,
# networks of images. Brute force gives one front however often it runs.
source "$MASE_SOURCE/tests/support/studies.sh"
jsc=(--sim-rows 2000)

# What all of these files have; $1: model, $2: data set, $3: space, $4: by, $5: strategy; seeds follow.
head_of() {
  cat <<TOML
model = "$1"
dataset = "$2"
task = "cls"
max_epochs = 5
batch_size = 512
learning_rate = 1e-2
accelerator = "gpu"
project = "$1"
seed = 42
log_every_n_steps = 5

[passes.quantize]
by = "type"
[passes.quantize.default.config]
name = "NA"
[passes.quantize.linear.config]
name = "integer"
"data_in_width" = 8
"data_in_frac_width" = 4

[search.search_space]
name = "$3"
[search.search_space.setup]
by = "$4"
[search.search_space.seed.default.config]
name = ["NA"]

[search.strategy]
name = "$5"
eval_mode = true
[search.strategy.sw_runner.basic_evaluation]
data_loader = "val_dataloader"
num_samples = 512
[search.strategy.hw_runner.average_bitwidth]
compare_to = 32
TOML
}
seed() {  # layer, data widths, weight and bias widths
  cat <<TOML
[search.search_space.seed.$1.config]
name = ["integer"]
data_in_width = [$2]
data_in_frac_width = ["NA"]
weight_width = [$3]
weight_frac_width = ["NA"]
bias_width = [$3]
bias_frac_width = ["NA"]
TOML
}
channels() {
  echo "[search.search_space.seed.$1.config]"
  echo "name = [\"$2\"]"
  [[ -z ${3-} ]] || echo "channel_multiplier = [$3]"
}
setup() {  # sampler, trials, whether metrics are summed
  echo "[search.strategy.setup]"
  [[ -z $2 ]] || printf 'n_jobs = 1\nn_trials = %s\ntimeout = 20000\n' "$2"
  [[ -z $1 ]] || echo "sampler = \"$1\""
  echo "sum_scaled_metrics = $3"
  [[ $3 == false ]] || echo 'direction = "maximize"'
  cat <<'TOML'
[search.strategy.metrics]
accuracy.scale = 1.0
accuracy.direction = "maximize"
average_bitwidth.scale = 0.2
average_bitwidth.direction = "minimize"
TOML
}
ptq=graph/quantize/mixed_precision_ptq
{ head_of jsc-tiny jsc $ptq name bruteforce; seed linear 4,8 2,4,8; seed seq_blocks_2 4,8 2,4,8; setup "" "" false; } >bruteforce.toml
{ head_of jsc-tiny jsc $ptq name txl_bf; seed linear 4,8 2,4,8; seed seq_blocks_2 4,8,16 2,4,8,16; setup tpe 48 true; } >own_strategy.toml
{ head_of jsc-toy10 jsc $ptq name optuna; seed linear 4,8 2,4,8; seed seq_blocks_2 4,8 2,4,8; setup tpe 20 false; } >own_network.toml
{ head_of jsc-three-linear-layers jsc LAB4/graph_lab4 name optuna; seed linear 4,8 2,4,8; channels seq_blocks_2 output_only 2,4
  channels seq_blocks_4 output_only 2,4,8; channels seq_blocks_6 input_only; setup brute-force 10 false; } >channels.toml
{ head_of toy toy_tiny $ptq name optuna; setup tpe 20 false; } |
  sed '/seed.default.config/,/^$/c [search.search_space.seed.default.config]\nname = ["integer"]\ndata_in_width = [4, 8]\ndata_in_frac_width = [3, 4, 5, 6, 7, 8, 9]\nweight_width = [2, 4, 8]\nweight_frac_width = [3, 4, 5]\nbias_width = [2, 4, 8]\nbias_frac_width = [3, 4, 5]\n' >toy.toml
{ head_of lenet mnist $ptq type optuna; seed linear 4,8,16,32 4,8,16,32; seed conv2d 4,8,16,32 4,8,16,32; setup tpe 3 false; } >images.toml
{ head_of lenet mnist $ptq name proxy; seed linear 4,8 2,4,8; seed seq_blocks_2 4,8 2,4,8; setup tpe 2 false; } >nothing.toml

# Digits enough for the files of images: idx files as MNIST's are.
python3 - <<'PY'
import os, random, struct
dice = random.Random(1)
os.makedirs("data/mnist")
for name, count in (("train", 200), ("t10k", 40)):
    with open(f"data/mnist/{name}-images-idx3-ubyte", "wb") as out:
        out.write(struct.pack(">IIII", 0x803, count, 28, 28) + dice.randbytes(count * 784))
    with open(f"data/mnist/{name}-labels-idx1-ubyte", "wb") as out:
        out.write(struct.pack(">II", 0x801, count) + bytes(dice.randrange(10) for _ in range(count)))
PY

run() {  # file, number of trials
  "$MASE_CH" search --config "$1.toml" "${jsc[@]}" --project "$1" --rows 64 >"$1.log" 2>&1 || fail "$1: exit code $?"
  grep -q "^INFO     Best trial(s):" "$1.log" || fail "$1: no table"
  local count
  count=$(query "mase_output/$1/software/search_ckpts/study.db" "select count(*) from trials where state = 'COMPLETE'")
  [[ $count == "$2" ]] || fail "$1: $count trials"
}
run bruteforce 18
run own_strategy 48
grep -q "strategy 'txl_bf' is not known here" own_strategy.log || fail "an unknown strategy is not told"
run own_network 18  # 20 trials of 18 configurations: none is tried twice
run channels 6
jsc=()
run toy 20
run images 3
run nothing 1
grep -q "seed 'seq_blocks_2' is not used: lenet has no such layer" nothing.log || fail "a seed without effect is not told"
grep -q "nothing is searched" nothing.log || fail "a space of one configuration is not told"

jsc=(--sim-rows 2000)
front() { sed -n '/Best trial(s)/,/INFO/p' "$1.log"; }
first=$(front bruteforce)
rm -rf mase_output/bruteforce
run bruteforce 18
[[ $(front bruteforce) == "$first" ]] || fail "another front"
