# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import importlib
from typing import Any

from chop._layout import absent_or_missing

_HOME = {"load_model": "checkpoint_load", "load_config": "config_load", "save_config": "config_load",
         "InputGenerator": "get_input", "get_cf_args": "get_input", "get_dummy_input": "get_input", "get_logger": "logger",
         "getLogger": "logger", "set_logging_verbosity": "logger", "parse_accelerator": "utils", "to_numpy_if_tensor": "utils",
         "deepsetattr": "attributes", "deepgetattr": "attributes", "root_logger": "logger", "post_parse_load_config": "config_load",
         **{name: "utils" for name in ("copy_weights", "execute_cli", "get_checkpoint_file", "get_factors", "is_tensor", "set_excepthook",
                                       "to_numpy", "to_tensor", "to_tensor_if_numpy")}}
_HOME.update({name: "huggingface" for name in ("get_hf_dummy_in", "get_tokenized_dataset", "get_tokenizer", "get_trainer")})
__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        return absent_or_missing("chop.tools", name, __all__)
    return getattr(importlib.import_module(f"chop.tools.{_HOME[name]}"), name)
