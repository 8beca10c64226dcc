# SPDX-License-Identifier: Apache-2.0
# Twenty kills of a convolutional network trained on images that are moved and mirrored at random.
import os
import random
import sys
import tempfile

sys.path.insert(0, os.path.join(os.environ["MASE_SOURCE"], "tests", "support"))
import kill_runs  # noqa: E402

CLASSES, SIDE = 4, 12
NETWORK = """
name = "small-cnn"
seq_blocks = [
  {type = "Conv2d", out_channels = 8, kernel_size = 3, padding = 1},
  {type = "BatchNorm2d"},
  {type = "ReLU"},
  {type = "MaxPool2d", kernel_size = 2},
  {type = "Dropout", p = 0.2},
  {type = "Flatten"},
  {type = "Linear"},
]
"""


def write_images(folder):
    chance = random.Random(1)
    for label in range(CLASSES):
        shape = [chance.randrange(256) for _ in range(SIDE * SIDE)]
        own = os.path.join(folder, "images", str(label))
        os.makedirs(own)
        for i in range(150):
            pixels = bytes(min(255, max(0, int(chance.gauss(value, 60)))) for value in shape)
            with open(os.path.join(own, "%d.pgm" % i), "wb") as file:
                file.write(b"P5 %d %d 255\n" % (SIDE, SIDE) + pixels)
    return os.path.join(folder, "images")


with tempfile.TemporaryDirectory() as folder:
    network = os.path.join(folder, "network.toml")
    with open(network, "w") as file:
        file.write(NETWORK)
    kill_runs.main([network, "images", "--dataset-folder", write_images(folder), "--dataset-flip",
                    "--dataset-crop", "2", "--max-epochs", "30", "--batch-size", "16",
                    "--learning-rate", "1e-2", "--log-every-n-steps", "20", "--checkpoint-steps", "23"])
