# SPDX-License-Identifier: Apache-2.0
"""Configurations in TOML; "NA" means None."""
from __future__ import annotations

import os
from typing import Any

from mase import _native


def convert_str_na_to_none(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: convert_str_na_to_none(item) for key, item in value.items()}
    if isinstance(value, list):
        return [convert_str_na_to_none(item) for item in value]
    return None if value == "NA" else value


def convert_none_to_str_na(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: convert_none_to_str_na(item) for key, item in value.items()}
    if isinstance(value, list):
        return [convert_none_to_str_na(item) for item in value]
    return "NA" if value is None else value


def load_config(config_path: Any) -> dict:
    return convert_str_na_to_none(_native.read_toml(os.fspath(config_path)))


def save_config(config: dict, config_path: Any) -> None:
    with open(config_path, "w", encoding="utf-8") as file:
        file.write(_native.to_toml(convert_none_to_str_na(config)))


def post_parse_load_config(args: Any, defaults: dict) -> Any:
    """Arguments of a program with those of its configuration (`args.config`) where they have their default; returns them."""
    if getattr(args, "config", None) is not None:
        for key, value in load_config(args.config).items():
            if key in defaults and getattr(args, key, None) == defaults[key]:
                setattr(args, key, value)
    return args
