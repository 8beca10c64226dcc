# SPDX-License-Identifier: Apache-2.0
"""A small vgg learns CIFAR-10's photographs, flipped and moved, from the first training file alone:
past 0.62 of the test images, in less than ten minutes of one core. The files are looked for where
the program looks for them (MASE_DATA)."""
import os
import re
import resource
import subprocess
import sys
import tempfile

CH = os.environ["MASE_CH"]
NETWORK = """
name = "small_vgg"
input = [3, 32, 32]

seq_blocks = [
  {type = "Conv2d", out_channels = 32, kernel_size = 3, padding = 1, bias = false}, {type = "BatchNorm2d"}, {type = "ReLU"},
  {type = "MaxPool2d", kernel_size = 2},
  {type = "Conv2d", out_channels = 64, kernel_size = 3, padding = 1, bias = false}, {type = "BatchNorm2d"}, {type = "ReLU"},
  {type = "Conv2d", out_channels = 64, kernel_size = 3, padding = 1, bias = false}, {type = "BatchNorm2d"}, {type = "ReLU"},
  {type = "MaxPool2d", kernel_size = 2},
  {type = "Conv2d", out_channels = 128, kernel_size = 3, padding = 1, bias = false}, {type = "BatchNorm2d"}, {type = "ReLU"},
  {type = "MaxPool2d", kernel_size = 2},
  {type = "Flatten"},
  {type = "Linear", out_features = 10},
]
"""


def ch(folder, *words):
    return subprocess.run([CH, *words], cwd=folder, capture_output=True, text=True)


with tempfile.TemporaryDirectory() as folder:
    if ch(folder, "data", "info", "cifar10").returncode:
        print("skipped: no files of CIFAR-10 (MASE_DATA)")
        sys.exit(77)
    with open(os.path.join(folder, "small_vgg.toml"), "w") as file:
        file.write(NETWORK)
    run = ch(folder, "train", "small_vgg.toml", "cifar10", "--batch-size", "64", "--max-epochs", "16",
             "--learning-rate", "3e-3", "--schedule", "one-cycle", "--dataset-flip", "--dataset-crop", "4",
             "--project", "run")
    assert run.returncode == 0, run.stderr
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    test = ch(folder, "test", "--load", "mase_output/run/software/training_ckpts/best.mz")
    accuracy = float(re.search(r"test_acc_epoch\s+([0-9.]+)", test.stdout + test.stderr).group(1))
    print("test accuracy %.4f after %.0f s of processor" % (accuracy, used.ru_utime + used.ru_stime))
    assert accuracy > 0.62, accuracy
    assert used.ru_utime + used.ru_stime < 600, used
