# modification in mase/machop/chop/models/physical/__init__.py
from .jet_substructure import get_jsc_10x

PHYSICAL_MODELS = {
    ...
    "jsc-10x": {
        "model": get_jsc_10x,
        "info": MaseModelInfo(
            "jsc-10x",
            model_source="physical",
            task_type="physical",
            physical_data_point_classification=True,
            is_fx_traceable=True,
        ),
    },
    ...
}
