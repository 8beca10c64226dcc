# SPDX-License-Identifier: Apache-2.0
"""What the scripts share, as a user's own helper file would."""
import torch

from chop.dataset import MaseDataModule
from chop.models import get_model, get_model_info
from chop.tools.get_input import InputGenerator

torch.manual_seed(0)
data_module = MaseDataModule(name="jsc", batch_size=8, model_name="jsc-tiny", num_workers=0, sim_rows=2000)
data_module.prepare_data()
data_module.setup()


def network(name):
    return get_model(name, task="cls", dataset_info=data_module.dataset_info, pretrained=False)


def generator(name="jsc-tiny"):
    return InputGenerator(data_module=data_module, model_info=get_model_info(name), task="cls", which_dataloader="train")


def dummy(name="jsc-tiny"):
    return next(iter(generator(name)))


def loader():
    return data_module.train_dataloader()
