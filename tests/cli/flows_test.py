# SPDX-License-Identifier: Apache-2.0
# What a new user does with a table of their own: described networks, held-out files, names, figures.
import json
import os
import random
import re
import struct
import sys
import tempfile
import zlib

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from commands import ch, check, end  # noqa: E402


def table(path, rows, seed, classes=3):
    draw = random.Random(seed)
    with open(path, "w") as out:
        out.write("a,b,c,d,class\n")
        for _ in range(rows):
            label = draw.randrange(classes)
            cells = [f"{draw.gauss(label * (k + 1) % 3, 1):.4f}" for k in range(4)]
            out.write(",".join(cells) + f",k{label}\n")


NETWORK = """name = "{name}"
input = [4]
seq_blocks = [
  {{type = "Linear", out_features = 8}},
  {{type = "ReLU"}},
  {{type = "Linear"}},
]
"""

with tempfile.TemporaryDirectory() as folder:
    table(f"{folder}/rows.csv", 400, 1)
    table(f"{folder}/held_out.csv", 333, 2)
    os.mkdir(f"{folder}/conf")
    with open(f"{folder}/conf/mine.toml", "w") as out:
        out.write(NETWORK.format(name="mine"))

    # A network that says its input and leaves the outputs to the data.
    said = ch("train", "conf/mine.toml", "rows.csv", "--target", "class", "--max-epochs", "3", "--batch-size", "32",
              "--project", "run", folder=folder)
    check("MACs per sample" in said and re.search(r"Linear *\| *\[32, 4\] *\| *\[32, 8\] *\| *40 *\| *32\b", said)
          or re.search(r"\[32, 4\] +\[32, 8\] +40 +32\b", said), "MACs of one sample, whatever the batch", said)
    check("with validation and files" in said, "the speed says what it contains", said)
    record = json.load(open(f"{folder}/mase_output/run/run.json"))
    speed = record["speed"]
    check(0 < speed["step_seconds"] <= speed["seconds"], "steps are a part of the time")
    best = f"{folder}/mase_output/run/software/training_ckpts/best"

    # A held-out file as a whole, and what is needed to draw one's own curves.
    said = ch("test", "mine", "held_out.csv", "--load", best + ".mz", "--target", "class", "--split", "all",
              "--json", "all.json", "--no-output", folder=folder)
    figures = json.load(open(f"{folder}/all.json"))
    check(figures["evaluation"]["rows"] == 333 and len(figures["outputs"]) == 333 and len(figures["labels"]) == 333,
          "all rows of the file", said)
    hits = sum(row.index(max(row)) == label for row, label in zip(figures["outputs"], figures["labels"]))
    check(abs(hits / 333 - figures["evaluation"]["accuracy"]) < 1e-12, "the accuracy is that of the outputs")
    check(sum(figures["evaluation"]["support"]) == 333, "rows of each class")
    check([p["signal"] for p in figures["evaluation"]["roc"][0]["working_points"]] == [0.3, 0.5, 0.8], "working points")

    # model = "NAME": NAME.toml beside the file that says so, or the network the checkpoint holds.
    with open(f"{folder}/conf/by_name.toml", "w") as out:
        out.write('model = "mine"\ndataset = "rows.csv"\ntarget = "class"\n[passes.quantize]\nby = "type"\n'
                  '[passes.quantize.linear.config]\nname = "integer"\ndata_in_width = 8\ndata_in_frac_width = 4\n'
                  'weight_width = 8\nweight_frac_width = 4\nbias_width = 8\nbias_frac_width = 4\n')
    said = ch("transform", "--config", "conf/by_name.toml", folder=folder)
    check("initial random weights" in said, "untrained weights are said", said)
    os.rename(f"{folder}/conf/mine.toml", f"{folder}/elsewhere.toml")
    said = ch("transform", "--config", "conf/by_name.toml", "--load", best + ".ckpt", folder=folder)
    check("initial random weights" not in said, "loaded weights are not called random", said)
    said = ch("transform", "--config", "conf/by_name.toml", folder=folder, code=2)
    check("unknown model 'mine'" in said, "a name nobody knows", said)

    # A table of jets has the name of its file and one order of classes, whether its target is named or not.
    said = ch("data", "info", "jsc-sim", "--sim-rows", "200", folder=folder)
    names = [line.split()[0] for line in said.split("\nFeature")[1].split("\n")[2:] if line.strip()]
    draw = random.Random(6)
    with open(f"{folder}/my_jets.csv", "w") as out:
        out.write(",".join(names) + ",class\n")
        for i in range(300):
            out.write(",".join(f"{draw.gauss(0, 1):.4f}" for _ in names) + "," + "gqwzt"[i % 5] + "\n")
    alone, named = (ch("data", "info", "my_jets.csv", *words, folder=folder) for words in ((), ("--target", "class")))
    check(alone == named and re.search(r"Name +my_jets", alone), "one name for one file", alone + named)
    check(re.findall(r"^([gqwzt]) ", alone, re.M) == list("gqwzt"), "the classes of jets in their order", alone)
    # What a folder of images holds beside them, and what their files hold beside colours.
    def png(path, pixels):  # 4 x 4, grey and alpha
        def chunk(name, data):
            return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        rows = b"".join(b"\0" + bytes(v for p in pixels[4 * r:4 * r + 4] for v in (p, 255)) for r in range(4))
        with open(path, "wb") as out:
            out.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 4, 4, 8, 4, 0, 0, 0)) +
                      chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))

    draw = random.Random(4)
    for name in ("cat", "dog"):
        os.makedirs(f"{folder}/pets/{name}")
        for i in range(20):
            png(f"{folder}/pets/{name}/{i}.png", [draw.randrange(256) for _ in range(16)])
        open(f"{folder}/pets/{name}/photo.jpg", "w").close()
    with open(f"{folder}/plugin.toml", "w") as out:
        out.write('plugin = ["evil.so"]\nmax_epochs = 1\n')
    with open(f"{folder}/flat.toml", "w") as out:
        out.write('name = "flat"\nseq_blocks = [{type = "Flatten"}, {type = "Linear"}]\n')
    said = ch("train", "flat.toml", "pets", "--config", "plugin.toml", "--project", "images", folder=folder)
    check("2 files are not read, photo.jpg" in said, "files that are no images are said", said)
    check("40 images have an alpha channel" in said, "alpha channels are said", said)
    check("plugin: not loaded" in said, "a plugin that a file names is said not to be loaded", said)

    # Many classes take memory in proportion.
    with open(f"{folder}/many.csv", "w") as out:
        draw = random.Random(3)
        out.write("a,class\n" + "".join(f"{draw.gauss(0, 1):.4f},k{i % 1500}\n" for i in range(3000)))
    with open(f"{folder}/many.toml", "w") as out:
        out.write('name = "many"\nseq_blocks = [{type = "Linear"}]\n')
    ch("train", "many.toml", "many.csv", "--target", "class", "--max-epochs", "1", "--project", "many", folder=folder)
    size = os.path.getsize(f"{folder}/mase_output/many/run.json")
    check(size < 3_000_000, f"run.json of 1,500 classes has {size} bytes")

end()
