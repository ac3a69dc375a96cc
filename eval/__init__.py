"""Judge datasets, sweep over settings, analyse runs and measure agreement with people; ``cli`` has
the commands.

A name is imported when it is first asked for: agreement needs no graph, and a run no analysis.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .analysis import Study
    from .analysis.early_stops import fit_stops
    from .analysis.fitted_cascade import FittedCascade, fit_cascade
    from .analysis.panel_sources import panel
    from .analysis.panel_value import Panel
    from .analysis.pilot import StudyPlan, plan_study
    from .datasets.dataset import Dataset, load_dataset
    from .experiments import Sweep, asweep, sweep
    from .experiments.bias import Bias, abias, bias
    from .experiments.redteam import RedTeam, aredteam, redteam
    from .experiments.reproduction import Reproduction
    from .experiments.reproduction_plan import areproduce, reproduce
    from .experiments.run_audit import Audit, aaudit, audit
    from .experiments.versus_runner import Versus, aversus, versus
    from .experiments.whatif import WhatIf, awhatif, whatif
    from .judges.gates.gates import check
    from .metrics import measure
    from .report.exports.exporting import export
    from .results.agreement import agreement
    from .results.evaluation import Evaluation, Evaluations
    from .results.merge import merge
    from .results.results import Result
    from .run.engines.ray_engine import Ray
    from .run.evaluate import aevaluate, evaluate

__all__ = [
    "Audit",
    "Bias",
    "Dataset",
    "Evaluation",
    "Evaluations",
    "FittedCascade",
    "Panel",
    "Ray",
    "RedTeam",
    "Reproduction",
    "Result",
    "Study",
    "StudyPlan",
    "Sweep",
    "Versus",
    "WhatIf",
    "aaudit",
    "abias",
    "aevaluate",
    "agreement",
    "aredteam",
    "areproduce",
    "asweep",
    "audit",
    "aversus",
    "awhatif",
    "bias",
    "check",
    "evaluate",
    "export",
    "fit_cascade",
    "fit_stops",
    "load_dataset",
    "measure",
    "merge",
    "panel",
    "plan_study",
    "redteam",
    "reproduce",
    "sweep",
    "versus",
    "whatif",
]

_NAMES = {
    "analysis": "Study",
    "analysis.early_stops": "fit_stops",
    "analysis.fitted_cascade": "FittedCascade fit_cascade",
    "analysis.panel_sources": "panel",
    "analysis.panel_value": "Panel",
    "analysis.pilot": "StudyPlan plan_study",
    "datasets": "Dataset load_dataset",
    "run.engines.ray_engine": "Ray",
    "experiments.versus_runner": "Versus aversus versus",
    "report.exports.exporting": "export",
    "judges.gates.gates": "check",
    "metrics": "measure",
    "experiments.bias": "Bias abias bias",
    "experiments.redteam": "RedTeam aredteam redteam",
    "experiments.reproduction": "Reproduction",
    "experiments.reproduction_plan": "areproduce reproduce",
    "experiments.run_audit": "Audit aaudit audit",
    "results.agreement": "agreement",
    "results.evaluation": "Evaluation Evaluations",
    "results.merge": "merge",
    "results.results": "Result",
    "run.evaluate": "aevaluate evaluate",
    "experiments": "Sweep asweep sweep",
    "experiments.whatif": "WhatIf awhatif whatif",
}
_MODULES = {name: module for module, names in _NAMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_MODULES[name]}", __name__), name)


def __dir__() -> list[str]:
    return __all__
