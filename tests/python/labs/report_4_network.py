# modification in mase/machop/chop/models/physical/jet_substructure/__init__.py
class JSC_10x(nn.Module):
    def __init__(self, info):
        super(JSC_10x, self).__init__()
        self.seq_blocks = nn.Sequential(
            # 1st LogicNets Layer
            nn.BatchNorm1d(16),  # input_quant       # 0
            nn.ReLU(16),  # 1
            nn.Linear(16, 60),  # linear              # 2
            nn.BatchNorm1d(60),  # output_quant       # 3
            nn.ReLU(60),  # 4
            # 2nd LogicNets Layer
            nn.Linear(60, 32),  # 5
            nn.BatchNorm1d(32),  # 6
            nn.ReLU(32),  # 7
            # 3rd LogicNets Layer
            nn.Linear(32, 5),  # 8
            nn.BatchNorm1d(5),  # 9
            nn.ReLU(5),
        )

    def forward(self, x):
        return self.seq_blocks(x)
