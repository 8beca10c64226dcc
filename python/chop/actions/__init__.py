# SPDX-License-Identifier: Apache-2.0
"""train, test and search with MASE's arguments, on the library's engine. The model that comes in has the
trained weights afterwards."""
from __future__ import annotations

import os
from typing import Any, Dict, Optional

from mase._native import Error


def _native_graph(model: Any, data_module: Any) -> Any:
    from mase.graph import Graph

    if isinstance(model, Graph):
        return model
    if type(model).__name__ == "NumpyNetwork":
        return model.graph
    if hasattr(model, "native"):
        return model.native()
    from mase.torch_import import from_torch
    import torch

    shape = data_module.data.sample_shape
    graph = from_torch(getattr(model, "model", model) if not isinstance(model, torch.nn.Module) else model,
                       torch.zeros(1, *shape))
    return graph


def _write_back(model: Any, graph: Any) -> None:
    """The trained weights into the caller's model."""
    from mase.graph import Graph

    if isinstance(model, Graph) or type(model).__name__ == "NumpyNetwork":
        (model if isinstance(model, Graph) else model.graph).load_state_dict(graph.state_dict())
        return
    import numpy
    import torch

    target = model.model if hasattr(model, "fx_graph") else model
    with torch.no_grad():
        state = target.state_dict()
        for name, array in graph.state_dict().items():
            key = name if name in state else name.replace(".weight", ".parametrizations.weight.original")
            if key in state:
                state[key].copy_(torch.from_numpy(numpy.array(array)))


def _load(model: Any, load_name: Any, load_type: Any) -> Any:
    if load_name is None:
        return model
    from chop.tools.checkpoint_load import load_model

    return load_model(load_name, load_type or "mz", model)


_TRAINER = {"max_epochs": "max_epochs", "max_steps": "max_steps", "accumulate_grad_batches": "accumulate_grad_batches",
            "log_every_n_steps": "log_every_n_steps"}
_IGNORED = {"devices", "num_nodes", "accelerator", "strategy", "callbacks", "plugins", "enable_progress_bar", "logger",
            "profiler"}  # where and how to run, not what to compute


def _trainer_options(plt_trainer_args: Optional[dict]) -> Dict[str, Any]:
    options: Dict[str, Any] = {}
    for key, value in (plt_trainer_args or {}).items():
        if key in _TRAINER:
            if value is not None:
                options[_TRAINER[key]] = value
        elif key == "fast_dev_run":  # as many batches
            options.update({"max_steps": int(value)} if value else {})
        elif key == "precision":
            if str(value).partition("-")[0] not in ("32", "None"):
                raise Error(f"precision: networks are trained in 32 bits here, not in {value!r}")
        elif key not in _IGNORED:
            raise Error(f"plt_trainer_args: unknown key '{key}'; it takes {', '.join(sorted(_TRAINER))}")
    if options.get("max_steps") in (-1, 0):
        options.pop("max_steps")
    return options


def _cosine(scheduler_args: dict, plt_trainer_args: Optional[dict]) -> Dict[str, Any]:
    """The 2025 form's {"t_max", "eta_min"} of the cosine that the rate follows; it ends with the run here."""
    unknown = scheduler_args.keys() - {"t_max", "eta_min"}
    if unknown:
        raise Error(f"scheduler_args: unknown key '{sorted(unknown)[0]}'; it takes t_max and eta_min")
    given, epochs = scheduler_args.get("t_max"), (plt_trainer_args or {}).get("max_epochs")
    if given is not None and given != epochs:
        raise Error(f"scheduler_args: t_max is {given}; the rate's cosine ends with the run here, after max_epochs ({epochs})")
    return {"name": "cosine", "eta_min": float(scheduler_args.get("eta_min", 1e-6))}


def _place(save_path: Any) -> Dict[str, str]:
    """Where a run's folder goes."""
    if save_path is None:
        return {}
    parent, name = os.path.split(os.path.normpath(os.fspath(save_path)))
    return {"project_dir": parent or ".", **({} if name == "." else {"project": name})}


def train(model: Any, model_info: Any = None, data_module: Any = None, dataset_info: Any = None, task: str = "cls",
          optimizer: str = "adam", learning_rate: float = 1e-5, weight_decay: float = 0.0,
          plt_trainer_args: Optional[dict] = None, auto_requeue: bool = False, save_path: Any = None, visualizer: Any = None,
          load_name: Any = None, load_type: Any = None, scheduler_args: Optional[dict] = None, **options: Any) -> Any:
    """Trains the model in place and returns the run (mase.TrainResult). Files go below `save_path`."""
    import mase

    if scheduler_args:
        options.setdefault("schedule", _cosine(scheduler_args, plt_trainer_args))
    model = _load(model, load_name, load_type)
    keys: Dict[str, Any] = {"training_optimizer": optimizer, "learning_rate": float(learning_rate),
                            "batch_size": data_module.batch_size, **_trainer_options(plt_trainer_args), **options}
    if weight_decay:
        keys["optimizer"] = {"weight_decay": float(weight_decay)}
    keys.update(_place(save_path))
    run = mase.train(_native_graph(model, data_module), data_module.name, save=save_path is not None,
                     **{**{k: v for k, v in data_module.options.items() if v}, **keys})
    _write_back(model, run.graph)
    return run


def test(model: Any, model_info: Any = None, data_module: Any = None, dataset_info: Any = None, task: str = "cls",
         optimizer: Any = None, learning_rate: Any = None, weight_decay: Any = None, plt_trainer_args: Optional[dict] = None,
         auto_requeue: bool = False, save_path: Any = None, visualizer: Any = None, load_name: Any = None,
         load_type: Any = None, **options: Any) -> Any:
    """Figures of the model on the test rows, printed as MASE prints them; returns mase.Evaluation."""
    import mase

    model = _load(model, load_name, load_type)
    _trainer_options(plt_trainer_args)
    result = mase.test(_native_graph(model, data_module), data_module.name, batch_size=data_module.batch_size,
                       **{**{k: v for k, v in data_module.options.items() if v}, **options})
    rule = "─" * 60
    print(rule)
    print(f"{'Test metric':^28}{'DataLoader 0':^28}".rstrip())
    print(rule)
    for name, value in result.figures.items():
        print(f"{name:^28}{value!s:^28}".rstrip())
    print(rule)
    return result


def _own_space(table: Any) -> Any:
    """A space of the script's (SEARCH_SPACE_MAP), if the configuration names one."""
    from chop.actions.search_parts import SEARCH_SPACE_MAP

    name = (table.get("search_space") or {}).get("name") if isinstance(table, dict) else None
    return SEARCH_SPACE_MAP.get(str(name))


def _search_own(kind: Any, model: Any, model_info: Any, task: str, dataset_info: Any, data_module: Any, table: Any) -> Any:
    """The trials of a space in Python, the best first, measured by the runners that the configuration names."""
    from chop.actions.search_parts import SearchStrategyBase, get_sw_runner

    strategy = dict(table.get("strategy") or {})
    runners = [get_sw_runner(name, model_info, task, dataset_info, "cpu", config) for name, config in (strategy.pop("sw_runner", None) or {}).items()]
    space = kind(model, model_info, dict(table["search_space"]))
    space.build_search_space()
    return SearchStrategyBase(model_info, task, dataset_info, data_module, strategy, sw_runner=runners).search(space)


def search(model: Any, model_info: Any = None, task: str = "cls", dataset_info: Any = None, data_module: Any = None,
           search_config: Any = None, save_path: Any = None, accelerator: str = "auto", load_name: Any = None,
           load_type: Any = None, visualizer: Any = None, **options: Any) -> Any:
    """A search as [search] of the configuration says; returns mase.SearchResult and prints its table."""
    import mase
    from chop.tools.config_load import convert_none_to_str_na, load_config

    model = _load(model, load_name, load_type)
    config = load_config(search_config) if not isinstance(search_config, dict) else search_config
    table = convert_none_to_str_na(config.get("search", config))
    own = _own_space(table)
    if own is not None:
        return _search_own(own, model, model_info, task, dataset_info, data_module, config.get("search", config))
    keys = {k: v for k, v in data_module.options.items() if v}
    keys.update(_place(save_path))
    found = mase.search(_native_graph(model, data_module), data_module.name, search=table, save=save_path is not None,
                        batch_size=data_module.batch_size, **{**keys, **options})
    from chop.tools.logger import get_logger

    logger = get_logger("chop.actions.search")
    logger.info("Best trial(s):")
    logger.info("\n" + found.table.rstrip("\n"))
    return found


def pre_transform_load(load_name: Any, load_type: Any, model: Any) -> Any:
    """The model with the weights of a file, or as it is without one."""
    return _load(model, load_name, load_type)


def transform(model: Any, model_info: Any = None, model_name: Any = None, data_module: Any = None, task: str = "cls", config: Any = None,
              save_dir: Any = None, load_name: Any = None, load_type: Any = None, accelerator: str = "auto") -> Any:
    """Runs the passes of a configuration (its [passes] table: names and arguments) on a graph of the model, in order, and returns
    the graph. With `save_dir` it is saved there."""
    from chop.ir.graph.mase_graph import MaseGraph
    from chop.passes.graph import PASSES
    from chop.tools.config_load import convert_str_na_to_none, load_config

    config = load_config(config) if not isinstance(config, dict) else config
    passes = config.get("passes")
    if not isinstance(passes, dict):
        raise Error("transform: the configuration has no table of passes: [passes.quantize]")
    graph = MaseGraph(_load(model, load_name, load_type))
    batch = next(iter(data_module.train_dataloader()))[0] if data_module is not None else None
    names = [node.target for node in graph.nodes_in]
    graph, _ = PASSES["init_metadata"](graph, None)
    graph, _ = PASSES["add_common_metadata"](graph, None if batch is None else {"dummy_in": {names[0]: batch}})
    graph, _ = PASSES["add_software_metadata"](graph, None)
    for name, arguments in passes.items():
        if name not in PASSES:
            raise Error(f"transform: there is no pass '{name}'; there are {', '.join(sorted(PASSES))}")
        graph, _ = PASSES[name](graph, convert_str_na_to_none(arguments))
    if save_dir is not None:
        PASSES["save_mase_graph"](graph, {"save_dir": save_dir})
    return graph


train_model = train  # the name `train` may come to stand for the module chop.actions.train


def emit(model: Any, model_info: Any = None, task: str = "", dataset_info: Any = None, data_module: Any = None, load_name: Any = None,
         load_type: Any = None, pass_args: Optional[dict] = None, **options: Any) -> Any:
    """The design of a quantised graph (emit_verilog_top_transform_pass, with `pass_args`); returns the graph."""
    from chop.ir.graph.mase_graph import MaseGraph
    from chop.passes.graph import add_hardware_metadata_analysis_pass, emit_verilog_top_transform_pass

    if options:
        raise Error(f"emit: unknown argument '{sorted(options)[0]}'; options of the design go into pass_args")
    if not isinstance(model, MaseGraph):
        raise Error("emit: expected a MaseGraph with metadata, quantised; hardware has no float")
    model = _load(model, load_name, load_type)
    model, _ = add_hardware_metadata_analysis_pass(model, {"cycles": pass_args["cycles"]} if pass_args and "cycles" in pass_args else None)
    return emit_verilog_top_transform_pass(model, pass_args)[0]


def simulate(model: Any = None, model_info: Any = None, task: str = "", dataset_info: Any = None, data_module: Any = None,
             load_name: Any = None, load_type: Any = None, run_emit: bool = False, skip_build: bool = False,
             skip_test: bool = False, trace_depth: int = 3, gui: bool = False, waves: bool = False,
             simulator: str = "verilator", pass_args: Optional[dict] = None, build_jobs: Optional[int] = None,
             unroll_count: Optional[int] = None) -> Any:
    """Simulates the design that was emitted last (or in pass_args["project_dir"], or in ~/.mase/top), row by row, and returns what was
    found; a row that differs is an error. `waves` writes hardware/sim/top.vcd. Verilator where it is installed, Icarus Verilog else."""
    import shutil

    import mase
    from chop.passes.graph import hardware
    from chop.tools.logger import get_logger

    logger = get_logger("chop.actions.simulate")
    if gui:
        raise Error("gui: simulations have no window here; waves=True writes a file for one")
    if run_emit:
        emit(model, pass_args=pass_args)
    project = (pass_args or {}).get("project_dir") or (hardware.last_project[0] if hardware.last_project else hardware.default_project())
    folder = os.path.join(os.path.expanduser(os.fspath(project)), "hardware")
    if not os.path.isdir(folder):
        raise Error(f"{folder}: there is no design; run emit_verilog_top_transform_pass first")
    if skip_test:
        logger.info(f"simulate: nothing was run (skip_test); the design is in {folder}")
        return None
    if skip_build:
        logger.info("simulate: the testbench is compiled anew; builds are not kept")
    if simulator == "verilator" and shutil.which("verilator") is None:
        simulator = "auto"
    result = mase.simulate(folder, simulator, wave=os.path.join(folder, "sim", "top.vcd") if waves else None)
    logger.info(f"{result.simulator}: compared {result.rows} rows, {result.mismatches} mismatches")
    return result


def get_model_wrapper(model_info: Any, task: str) -> Any:
    raise Error("get_model_wrapper: there is no Lightning here; actions.train trains the model itself")
