# SPDX-License-Identifier: Apache-2.0
"""Parts of the original's search that scripts build on: the base of search spaces, and what measures a network."""
from __future__ import annotations

import itertools
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional

from mase._native import Error


class SearchSpaceBase:
    """What a search draws from. A space says which choices there are (`build_search_space` sets choices_flattened, lists by
    name, and choice_lengths_flattened) and which network a choice is (`rebuild_model`)."""

    def __init__(self, model: Any, model_info: Any, config: Mapping[str, Any], dummy_input: Any = None, accelerator: str = "cpu",
                 **options: Any):
        self.model, self.model_info, self.config = model, model_info, config
        self.dummy_input, self.accelerator = dummy_input, accelerator
        self.choices: Dict[str, Any] = {}
        self.choices_flattened: Dict[str, List[Any]] = {}
        self.choice_lengths_flattened: Dict[str, int] = {}
        self._post_init_setup()

    def _post_init_setup(self) -> None:
        pass

    def build_search_space(self) -> None:
        raise NotImplementedError(f"{type(self).__name__}.build_search_space")

    def rebuild_model(self, sampled_config: Any, is_eval_mode: bool = True) -> Any:
        raise NotImplementedError(f"{type(self).__name__}.rebuild_model")

    def flattened_indexes_to_config(self, indexes: Mapping[str, int]) -> Dict[str, Any]:
        """The choice of each name that an index stands for."""
        return {name: self.choices_flattened[name][index] for name, index in indexes.items()}

    def optuna_sampler(self, trial: Any) -> Dict[str, Any]:
        return self.flattened_indexes_to_config(
            {name: trial.suggest_int(name, 0, length - 1) for name, length in self.choice_lengths_flattened.items()})

    def grid(self) -> Iterator[Dict[str, Any]]:
        """Every choice, one after another."""
        for values in itertools.product(*self.choices_flattened.values()):
            yield dict(zip(self.choices_flattened, values))


class RunnerBasicEval:
    """Mean loss and accuracy of a network over some batches of a data module."""

    def __init__(self, model_info: Any, task: str, dataset_info: Any, accelerator: Any = "cpu", config: Optional[dict] = None):
        if task not in ("cls", "classification"):
            raise Error(f"basic_evaluation: measures classifications, not {task!r}")
        self.config = dict(config or {})
        unknown = self.config.keys() - {"data_loader", "num_samples"}
        if unknown:
            raise Error(f"basic_evaluation: unknown key '{sorted(unknown)[0]}'; it takes data_loader and num_samples")

    def __call__(self, data_module: Any, model: Any, sampled_config: Any = None) -> Dict[str, float]:
        import torch

        network = getattr(model, "model", model)
        loader = getattr(data_module, self.config.get("data_loader", "val_dataloader"))()
        count, loss, right = 0, 0.0, 0
        network.eval()
        with torch.no_grad():
            for x, y in loader:
                left = self.config.get("num_samples", float("inf")) - count
                if left <= 0:
                    break
                x, y = x[: int(min(left, len(x)))], y[: int(min(left, len(x)))]
                scores = network(x)
                loss += float(torch.nn.functional.cross_entropy(scores, y, reduction="sum"))
                right += int((scores.argmax(-1) == y).sum())
                count += len(y)
        if not count:
            raise Error("basic_evaluation: there are no rows")
        return {"loss": loss / count, "accuracy": right / count}


SW_RUNNERS: Dict[str, Callable] = {"basic_evaluation": RunnerBasicEval}


def get_sw_runner(name: str, model_info: Any, task: str, dataset_info: Any, accelerator: Any, config: Optional[dict] = None) -> Any:
    """What measures a network: runner(data_module, model, sampled_config) gives figures by name."""
    if name not in SW_RUNNERS:
        raise Error(f"{name}: there is no such runner; there are {', '.join(SW_RUNNERS)} (actions.search trains too)")
    return SW_RUNNERS[name](model_info, task, dataset_info, accelerator, config)
