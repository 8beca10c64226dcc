# SPDX-License-Identifier: Apache-2.0
"""Nothing runs that a folder says: names in a manifest are held to their rule, a folder's own name never stands in
a tool's script, and SystemVerilog that would do more than compute is refused. A marker must not appear."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from random_designs import Network  # noqa: E402

CH = os.environ["MASE_CH"]
NAMES = ["sp ace", "semi; exec -- touch MARK; y", "new\nline\nexec -- touch MARK\n", "q\"uote'd", "$(touch MARK)`touch MARK`",
         "-p touch", "a#b*c\\d|touch MARK|&", "[exec touch MARK]{x}"]


class Folders(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = scratch.name
        Network(3).write(self.folder)  # small: tools are quick with it
        self.addCleanup(lambda: self.assertEqual(self.marks(), []))

    def marks(self):
        return [os.path.join(base, name) for base, _, names in os.walk(self.folder) for name in names if name == "MARK"]

    def run_ch(self, *words, code=0):
        environment = dict(os.environ, HOME=self.folder)
        result = subprocess.run([CH, *words], cwd=self.folder, env=environment, text=True, capture_output=True)
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        self.assertEqual(self.marks(), [], words)
        return result.stdout if code == 0 else result.stderr

    def emit(self, folder, *more):
        self.run_ch("emit", "n.toml", "--load", "w.safetensors", "--config", "q.toml", "--output", folder, "--quiet",
                    "--rows", "20", "--effort", "0", *more)

    def tools(self, folder, cpp):
        if cpp:  # compiling takes seconds
            self.assertIn("20 rows, 0 mismatches", self.run_ch("simulate", "--simulator", "cpp", "--", folder))
        if shutil.which("iverilog"):
            wave = os.path.join(folder, "wa\"ve; .vcd") if not folder.startswith("-") else "wave.vcd"
            said = self.run_ch("simulate", "--simulator", "iverilog", "--wave", wave, "--", folder)
            self.assertIn("20 rows, 0 mismatches", said)
            self.assertGreater(os.path.getsize(os.path.join(self.folder, wave)), 1000)
        if shutil.which("yosys"):
            self.assertIn("LUTs", self.run_ch("synth", "--", folder))

    def test_any_name_of_a_folder_works(self):
        for index, name in enumerate(NAMES):
            self.emit(name, "--no-prove")
            self.tools(name, cpp=index < 3)

    def test_a_name_with_everything_in_it(self):
        name = "a b;\nexec -- touch MARK;\n\"'$(touch MARK)\\#"
        self.emit(name, "--levels", "9", "--valid")
        if shutil.which("verilator"):
            said = self.run_ch("simulate", name, "--simulator", "verilator")
            self.assertIn("20 rows, 0 mismatches", said)
        if shutil.which("yosys") and shutil.which("nextpnr-ice40"):
            self.assertIn("MHz", self.run_ch("synth", name, "--place", "ice40"))

    def all_refuse(self, wanted, folder="design"):
        for words in (["synth"], ["simulate"], ["simulate", "--simulator", "iverilog"], ["synth", "--place", "ice40"]):
            if "--place" in words and not shutil.which("nextpnr-ice40"):
                continue
            said = self.run_ch(words[0], folder, *words[1:], code=2)
            self.assertEqual(said.count("\n"), 1, said)
            self.assertIn(wanted, said)
        self.assertFalse(os.path.exists(os.path.join(self.folder, folder, "build")))

    @unittest.skipUnless(shutil.which("yosys") and shutil.which("iverilog"), "needs yosys and iverilog")
    def test_a_manifest_is_held_to_its_rules(self):
        self.emit("design", "--no-prove")
        path = os.path.join(self.folder, "design/manifest.json")
        with open(path) as file:
            good = json.load(file)
        for key, value, wanted in [
                ("top", "top; exec -- touch MARK; #", "is no name of a module"),
                ("top", "top\nexec -- touch MARK", "is no name of a module"),
                ("top", "../../top", "is no name of a module"),
                ("top", "module", "is no name of a module"),
                ("top", "", "is no name of a module"),
                ("top", 3, "top"),
                ("style", "x; exec -- touch MARK", "unknown style"),
                ("latency_cycles", 1 << 40, "latency_cycles"),
                ("latency_cycles", "1); $system(\"touch MARK\");", "latency_cycles"),
                ("valid", "yes", "valid"),
                ("inputs", [{"width": -3}], "inputs"),
                ("inputs", [{"width": "3] x; initial $system(\"touch MARK\"); wire [1"}], "inputs"),
                ("outputs", [], "outputs"),
                ("outputs", "x", "outputs")]:
            with open(path, "w") as file:
                json.dump(dict(good, **{key: value}), file)
            self.all_refuse(wanted)
        for text in ("[]", "{", "null", ""):
            with open(path, "w") as file:
                file.write(text)
            self.all_refuse("manifest.json")

    @unittest.skipUnless(shutil.which("yosys") and shutil.which("iverilog"), "needs yosys and iverilog")
    def test_sources_that_do_more_than_compute_are_refused(self):
        self.emit("design", "--no-prove")
        path = os.path.join(self.folder, "design/rtl/top.sv")
        with open(path) as file:
            good = file.read()
        for more, wanted in [
                ("initial $system(\"touch MARK\");", "$system"),
                ("initial $c(1);", "$c"),
                ("`include \"/etc/passwd\"", "`include"),
                ("`define x $sys\n", "`define"),
                ("import \"DPI-C\" function int system(input int x);", "a text"),
                ("wire \\a/* ; initial $system(1); /* */", "an escaped name"),
                ("/* initial", "a comment without end"),
                ("// $system(\"touch MARK\")\n initial $finish;", "$finish")]:
            with open(path, "w") as file:
                file.write(good.replace("endmodule", more + "\nendmodule"))
            self.all_refuse(wanted)
        with open(path, "w") as file:
            file.write(good)
        odd = os.path.join(self.folder, "design/rtl/x; exec -- touch MARK; .sv")
        shutil.copy(path, odd)
        self.all_refuse("is not named after a module")
        os.remove(odd)
        # The testbench that runs is made anew: what stands in the folder is for make.
        with open(os.path.join(self.folder, "design/sim/top_tb.sv"), "w") as file:
            file.write("module top_tb; initial $system(\"touch MARK\"); endmodule\n")
        self.assertIn("20 rows, 0 mismatches", self.run_ch("simulate", "design", "--simulator", "iverilog"))

    def test_a_folder_that_is_no_design(self):
        os.mkdir(os.path.join(self.folder, "empty"))
        for folder in ("empty", "nowhere"):
            for command in ("simulate", "synth"):
                said = self.run_ch(command, folder, code=2)
                self.assertIn("is no emitted design", said)
                self.assertIn("ch emit", said)


unittest.main()
