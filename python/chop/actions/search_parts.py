# SPDX-License-Identifier: Apache-2.0
"""Parts of the original's search that scripts build on: the base of search spaces, and what measures a network."""
from __future__ import annotations

import itertools
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Set

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


class SWRunnerBase:
    """What measures a network: available_metrics, and a call that gives figures by name."""

    available_metrics: tuple = ()

    def __init__(self, model_info: Any = None, task: str = "cls", dataset_info: Any = None, accelerator: Any = "cpu",
                 config: Optional[dict] = None):
        self.model_info, self.task, self.dataset_info, self.accelerator, self.config = model_info, task, dataset_info, accelerator, config or {}
        self._post_init_setup()

    def _post_init_setup(self) -> None:
        pass

    def __call__(self, data_module: Any, model: Any, sampled_config: Any = None) -> Dict[str, float]:
        raise NotImplementedError(f"{type(self).__name__}.__call__")


class HWRunnerBase(SWRunnerBase):
    """The same for what a network costs."""


class SearchStrategyBase:
    """How a space is searched: `search(space)` gives the study. This one suggests an index for each name of the space, rebuilds the
    network, adds up what the runners measure times `metrics` (scale and direction), and keeps every trial."""

    def __init__(self, model_info: Any = None, task: str = "cls", dataset_info: Any = None, data_module: Any = None, config: Optional[dict] = None,
                 accelerator: str = "cpu", save_dir: Any = None, sw_runner: Any = (), hw_runner: Any = ()):
        self.config, self.data_module, self.save_dir = dict(config or {}), data_module, save_dir
        self.runners = [*(sw_runner or ()), *(hw_runner or ())]
        self.trials: List[Dict[str, Any]] = []
        self._post_init_setup()

    def _post_init_setup(self) -> None:
        pass

    def objective(self, config: Dict[str, Any], space: Any) -> float:
        model = space.rebuild_model(config)
        figures: Dict[str, float] = {}
        for runner in self.runners:
            figures.update(runner(self.data_module, model, config))
        metrics = self.config.get("metrics") or {name: {"scale": 1.0, "direction": "maximize"} for name in figures}
        score = 0.0
        for name, rule in metrics.items():
            if name not in figures:
                raise Error(f"metrics: nothing measures '{name}'; there are {', '.join(figures)}")
            score += float(rule.get("scale", 1.0)) * figures[name] * (1 if rule.get("direction", "maximize") == "maximize" else -1)
        self.trials.append({"config": config, "figures": figures, "score": score})
        return score

    def search(self, search_space: Any) -> List[Dict[str, Any]]:
        """The trials, the best first: `setup.n_trials` of them, drawn by `setup.seed`, none twice; all there are if that is fewer."""
        import random

        setup = self.config.get("setup", self.config)
        lengths = search_space.choice_lengths_flattened
        whole = 1
        for length in lengths.values():
            whole *= length
        draw, wanted = random.Random(setup.get("seed", 0)), min(int(setup.get("n_trials", whole)), whole)
        seen: Set[int] = set()
        while len(seen) < wanted:
            number = draw.randrange(whole)
            if number in seen:
                continue
            seen.add(number)
            indexes = {}
            for name, length in lengths.items():
                number, indexes[name] = divmod(number, length)
            self.objective(search_space.flattened_indexes_to_config(indexes), search_space)
        return sorted(self.trials, key=lambda trial: -trial["score"])


class RunnerBasicEval(SWRunnerBase):
    """Mean loss and accuracy of a network over some batches of a data module."""

    available_metrics = ("loss", "accuracy")

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


SEARCH_SPACE_MAP: Dict[str, type] = {}  # a script's own spaces by name
SW_RUNNERS: Dict[str, Callable] = {"basic_evaluation": RunnerBasicEval}


def get_sw_runner(name: str, model_info: Any, task: str, dataset_info: Any, accelerator: Any, config: Optional[dict] = None) -> Any:
    """What measures a network: runner(data_module, model, sampled_config) gives figures by name."""
    if name not in SW_RUNNERS:
        raise Error(f"{name}: there is no such runner; there are {', '.join(SW_RUNNERS)} (actions.search trains too)")
    return SW_RUNNERS[name](model_info, task, dataset_info, accelerator, config)
