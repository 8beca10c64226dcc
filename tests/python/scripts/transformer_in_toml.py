# SPDX-License-Identifier: Apache-2.0
"""torch's own transformer layers, described in TOML: torch's weights load into them, with torch's outputs."""
import numpy as np
import torch

import mase

with open("net.toml", "w") as file:
    file.write("""input = [7, 16]
[[layers]]
name = "enc"
type = "TransformerEncoder"
d_model = 16
nhead = 2
dim_feedforward = 32
num_layers = 2
[[layers]]
name = "pooled"
function = "mean"
dim = 1
[[layers]]
name = "head"
type = "Linear"
out_features = 3
""")


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = torch.nn.TransformerEncoder(torch.nn.TransformerEncoderLayer(16, 2, 32, batch_first=True), 2)
        self.head = torch.nn.Linear(16, 3)

    def forward(self, x):
        return self.head(self.enc(x).mean(1))


net = Net().eval()
torch.save(net.state_dict(), "net.pt")
x = torch.randn(4, 7, 16)
ours = mase.load("net.toml", "net.pt")(x.numpy())
assert np.allclose(np.asarray(ours), net(x).detach().numpy(), atol=1e-5)
