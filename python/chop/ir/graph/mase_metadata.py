# SPDX-License-Identifier: Apache-2.0
"""What passes know about a node: node.meta["mase"].parameters["common"]["args"]["weight"], ..."""
from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any, Dict, Iterator, Optional


class MaseMetadata(MutableMapping):
    """`parameters` has common, software and hardware; the object itself is a mapping of the three."""

    internal = None

    def __init__(self, node: Any = None, model: Any = None, parameters: Optional[Dict[str, dict]] = None):
        self.node, self.model = node, model
        self.parameters: Dict[str, dict] = parameters or {"common": {}, "software": {}, "hardware": {}}

    @property
    def module(self) -> Any:
        """The layer a node calls; None for other nodes."""
        if self.node is None or self.node.op != "call_module":
            return None
        return self.model.get_submodule(self.node.target)

    def __getitem__(self, key: str) -> Any:
        return self.parameters[key]

    def __setitem__(self, key: str, value: Any) -> None:
        self.parameters[key] = value

    def __delitem__(self, key: str) -> None:
        del self.parameters[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.parameters)

    def __len__(self) -> int:
        return len(self.parameters)

    def __repr__(self) -> str:
        return f"MaseMetadata({self.parameters})"


MaseGraphMetadata = MaseMetadata
