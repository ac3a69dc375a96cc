"""Contract tests for your own protocols, metrics, datasets and model providers, scripted models, and
the type of the fixture ``judge``.

Each kit is a class with tests. Subclass it in a test file, name your extension, and run pytest:

>>> from jurygraph.graphs import debate
>>> from jurygraph.testing import ProtocolContract
>>> class TestMyProtocol(ProtocolContract):
...     protocol = debate
...     settings = ({}, {"n": 1})

jurygraph's own protocols, metrics and datasets pass the same tests. This package needs pytest, and
the rest of jurygraph does not.
"""

try:
    import pytest
except ImportError as error:
    raise ImportError("jurygraph.testing needs pytest: pip install pytest") from error

# Before these modules are imported: a failed ``assert`` in them then shows its values.
pytest.register_assert_rewrite(
    f"{__name__}.dataset_contract",
    f"{__name__}.metric_contract",
    f"{__name__}.protocol_contract",
    f"{__name__}.provider_contract",
)

from ..eval.judges.judge_session import JudgeSession  # noqa: E402
from ..nodes.models.scripted_model import ScriptedModel, ScriptedToolModel  # noqa: E402
from .dataset_contract import DatasetContract  # noqa: E402
from .metric_contract import MetricContract  # noqa: E402
from .protocol_contract import ProtocolContract  # noqa: E402
from .provider_contract import ProviderContract  # noqa: E402

__all__ = [
    "DatasetContract",
    "JudgeSession",
    "MetricContract",
    "ProtocolContract",
    "ProviderContract",
    "ScriptedModel",
    "ScriptedToolModel",
]
