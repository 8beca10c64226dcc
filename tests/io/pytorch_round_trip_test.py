# SPDX-License-Identifier: Apache-2.0
"""PyTorch writes, ch reads; ch's library writes, PyTorch reads: bit for bit, in both containers."""
import json, os, subprocess, sys, tempfile

try:
    import numpy, torch
except ImportError:
    print("python3-torch is not installed")
    sys.exit(77)

ch = os.environ["MASE_CH"]


def inspect(path, *options):
    run = subprocess.run([ch, "inspect", path, "--json", *options], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def values(path, name, like):
    answer = inspect(path, "--tensor", name)
    numbers = [float(x["$float"]) if isinstance(x, dict) else x for x in answer["values"]]
    assert answer["dtype"] == str(like.dtype).split(".")[1], (name, answer["dtype"])
    assert answer["shape"] == list(like.shape), name
    return torch.tensor(numbers, dtype=torch.float64).reshape(like.shape)


def main():
    torch.manual_seed(1)
    folder = tempfile.mkdtemp()
    os.chdir(folder)
    base = torch.randn(6, 8)
    state = {
        "f32": torch.randn(3, 5), "f64": torch.randn(2, 2, dtype=torch.float64),
        "f16": torch.randn(7).half(), "bf16": torch.randn(7).bfloat16(),
        "i64": torch.arange(5), "i32": torch.arange(5, dtype=torch.int32),
        "i16": torch.arange(-2, 3, dtype=torch.int16), "i8": torch.arange(-2, 3, dtype=torch.int8),
        "u8": torch.arange(5, dtype=torch.uint8), "flag": torch.tensor([True, False]),
        "scalar": torch.tensor(2.5), "empty": torch.zeros(0, 3), "view": base.t(),
        "slice": base[1:4, 2:7:2], "expanded": torch.tensor([1.0, 2.0]).expand(3, 2),
        "odd": torch.tensor([float("nan"), float("inf"), -float("inf"), -0.0, 1e-45]),
        "param": torch.nn.Parameter(torch.ones(2)),
        "names \u00e9 \x1b[2J": torch.ones(1),
    }
    for zipped in (True, False):
        torch.save(state, "a.pt", _use_new_zipfile_serialization=zipped)
        listed = {t["name"]: t for t in inspect("a.pt")["tensors"]}
        assert set(listed) == set(state), set(state) ^ set(listed)
        for name, tensor in state.items():
            got, want = values("a.pt", name, tensor), tensor.detach().double()
            assert torch.equal(torch.nan_to_num(got, 7), torch.nan_to_num(want, 7)), name
        table = subprocess.run([ch, "inspect", "a.pt"], capture_output=True, text=True).stdout
        assert "\x1b" not in table and "\\x1b[2J" in table
    network = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU(), torch.nn.Linear(3, 2))
    optimizer = torch.optim.Adam(network.parameters())
    network(torch.randn(5, 4)).sum().backward()
    optimizer.step()
    torch.save({"epoch": 1, "pytorch-lightning_version": "2.1.0", "score": numpy.float32(0.5),
                "state_dict": {"model." + k: v for k, v in network.state_dict().items()},
                "optimizer_states": [optimizer.state_dict()], "array": numpy.arange(6.0).reshape(2, 3),
                "size": torch.Size([1, 2]), "device": torch.device("cpu"), "dtype": torch.float16},
               "b.ckpt")
    found = inspect("b.ckpt")
    assert found["type"] == "pl" and found["contents"]["epoch"] == 1
    assert found["contents"]["score"] == 0.5 and found["contents"]["size"] == [1, 2]
    names = [t["name"] for t in found["tensors"] if t["network"]]
    assert names == ["model." + k for k in network.state_dict()], names
    others = {t["name"] for t in found["tensors"] if not t["network"]}
    assert "optimizer_states.0.state.0.exp_avg" in others and "array" in others
    torch.save(network, "whole.pt")
    assert inspect("whole.pt")["contents"] == {"$symbol": "<torch.nn.modules.container.Sequential>"}
    torch.jit.script(network).save("script.pt")
    refused = subprocess.run([ch, "inspect", "script.pt"], capture_output=True, text=True)
    assert refused.returncode == 2 and "TorchScript" in refused.stderr, refused.stderr


main()
