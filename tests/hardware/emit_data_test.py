# SPDX-License-Identifier: Apache-2.0
"""Which rows ch emit compares on: those of --dataset, of the configuration's data set with its options, of the
data that the network's file names, or drawn ones; and that nothing of this is guessed."""
import os
import subprocess
import tempfile
import unittest

CH = os.environ["MASE_CH"]
PASSES = ("[passes.fuse_batch_norm]\n[passes.quantize]\nby = \"type\"\n[passes.quantize.default.config]\nname = \"NA\"\n"
          "[passes.quantize.linear.config]\nname = \"integer\"\n" +
          "".join(f"{operand}_width = 6\n{operand}_frac_width = 3\n" for operand in ("data_in", "weight", "bias")))


class Rows(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        cls.folder = cls.scratch.name
        cls.addClassCleanup(cls.scratch.cleanup)
        cls.ch("train", "jsc-tiny", "jsc-sim", "--sim-rows", "500", "--max-epochs", "1", "--project", "sim")
        cls.sim = "mase_output/sim/software/training_ckpts/best.mz"
        rows = "".join(f"{i % 7},{i % 5},{i % 3},{'ab'[i % 2]}\n" for i in range(100))
        cls.write("table.csv", "one,two,class,three\n" + rows)
        cls.write("net.toml", "name = \"net\"\nseq_blocks = [{type = \"Linear\"}]\n")
        cls.ch("train", "net.toml", "table.csv", "--target", "class", "--max-epochs", "1", "--project", "table")
        cls.table = "mase_output/table/software/training_ckpts/best.mz"
        cls.passes = cls.write("passes.toml", PASSES)

    @classmethod
    def write(cls, name, text):
        with open(os.path.join(cls.folder, name), "w") as file:
            file.write(text)
        return name

    @classmethod
    def ch(cls, *words, code=0):
        environment = dict(os.environ, MASE_DATA=os.path.join(cls.folder, "data"), HOME=cls.folder)
        result = subprocess.run([CH, *words], cwd=cls.folder, env=environment, text=True, capture_output=True)
        assert result.returncode == code, f"{words}: {result.returncode}\n{result.stdout}{result.stderr}"
        return result.stdout + result.stderr

    def emit(self, network, *words, **options):
        return self.ch("emit", "--load", network, "--quiet", "--no-prove", *words, **options)

    def test_the_data_that_the_file_names(self):
        self.assertIn("integers on 100 test rows of jsc-sim", self.emit(self.sim, "--config", self.passes))
        self.assertRegex(self.emit(self.table, "--config", self.passes), r"integers on \d+ test rows of table")

    def test_a_quantised_file_names_them_too(self):
        self.ch("transform", "--load", self.sim, "--config", self.passes, "--project", "quantised")
        said = self.emit("mase_output/quantised/software/transform/transformed.mz")
        self.assertIn("integers on", said)

    def test_the_data_set_of_the_configuration_with_its_options(self):
        config = self.write("data.toml", "dataset = \"jsc-sim\"\nsim_rows = 250\n" + PASSES)
        self.assertIn("integers on 50 test rows of jsc-sim", self.emit(self.sim, "--config", config))
        config = self.write("table.toml", "dataset = \"table.csv\"\ntarget = \"class\"\n" + PASSES)
        self.assertRegex(self.emit(self.table, "--config", config), r"integers on \d+ test rows of table")
        config = self.write("wrong.toml", "dataset = \"jsc-simm\"\n" + PASSES)
        self.assertIn("did you mean 'jsc-sim'?", self.emit(self.sim, "--config", config, code=2))

    def test_what_is_typed_wins(self):
        config = self.write("typed.toml", "dataset = \"nosuch.csv\"\n" + PASSES)
        self.assertIn("test rows of jsc-sim",
                      self.emit(self.sim, "--config", config, "--dataset", "jsc-sim"))
        self.assertIn("integers on 40 drawn rows", self.emit(self.sim, "--config", self.passes, "--rows", "40"))
        self.assertIn("leave one of them out", self.emit(self.sim, "--config", self.passes, "--rows", "40",
                                                         "--dataset", "jsc-sim", code=2))

    def test_data_that_are_gone_are_told_and_rows_drawn(self):
        place = os.path.join(self.folder, "table.csv")
        os.rename(place, place + ".away")
        try:
            said = self.emit(self.table, "--config", self.passes)
        finally:
            os.rename(place + ".away", place)
        self.assertIn("was trained on", said)
        self.assertIn("which is not here", said)
        self.assertIn("integers on 2000 drawn rows", said)

    def test_shrink_takes_them_from_the_file(self):
        said = self.ch("shrink", "--load", self.table, "--config", self.passes, "--rounds", "1", "--retrain-epochs", "0")
        self.assertIn("test rows of table", said)


unittest.main()
