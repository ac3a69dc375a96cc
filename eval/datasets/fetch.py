"""Download published files once, and check their content.

- From the Hugging Face Hub with ``huggingface_hub``, at a fixed revision, into its cache. Files are
  checked against the SHA-256 that the Hub states, which is recorded in the catalogue.
- From GitHub with ``pooch``, at a fixed commit. Files are checked against the content address
  (git's blob id) that GitHub's API states for the file in that commit. The list of addresses is
  stored with the files, and a file that differs from it later is refused.

A file larger than ``MOST_BYTES`` is refused, so that a server or mirror cannot fill the disk.

``HF_ENDPOINT``, ``JURYGRAPH_GITHUB_RAW`` and ``JURYGRAPH_GITHUB_API`` name mirrors;
``JURYGRAPH_CACHE`` the cache.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import logging
import os
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO
from urllib.parse import quote

from tenacity import RetryCallState, Retrying, retry_if_exception, stop_after_attempt

from ...nodes.models.retry import RetryPolicy
from ...state.errors import DataError, JurygraphError, UsageError
from .catalog import GitHub, HuggingFace, Source
from .files import sha256

MOST_BYTES = 1 << 29
"""The size limit of a downloaded file."""


def _too_large(name: str, size: str) -> DataError:
    limit = f"the limit for a download is {MOST_BYTES:,} bytes"
    remedy = "download it yourself, and give its folder with --data-dir (data_dir=)"
    return DataError(f"{name} has {size}, and {limit}; {remedy}")


def fetch(source: Source) -> Path:
    """Download a dataset's published files if they are missing, and return their folder.

    Raises:
        UsageError: a required package is not installed.
        DataError: the download fails, or a file has unexpected content.
    """
    assert source.home is not None
    home = source.home
    files = source.forms[0].files
    instead = f"give the folder with {source.wanted} with --data-dir (data_dir=)"
    # Each package and the extra that installs it.
    needed = {"pooch" if isinstance(home, GitHub) else "huggingface_hub": "hub"}
    if any(name.endswith(".parquet") for name in files):
        needed["pyarrow"] = "frames"
    if missing := [name for name in needed if importlib.util.find_spec(name) is None]:
        raise UsageError(
            f"{source.name} is not bundled, and {missing[0]}, which fetches or reads it, is not "
            f'installed: pip install "jurygraph[{",".join(needed.values())}]", or {instead}'
        )
    try:
        return (
            fetch_from_github(home, files)
            if isinstance(home, GitHub)
            else _fetch_from_hub(home, files)
        )
    except JurygraphError:
        raise
    except Exception as error:  # the clients pass on all errors of their own libraries
        raise DataError(
            f"{source.name} could not be fetched from {home.address}: {_reason(error)}; try "
            f"again, or {instead}"
        ) from error


def _fetch_from_hub(home: HuggingFace, files: Sequence[str]) -> Path:
    from huggingface_hub import (
        get_hf_file_metadata,
        hf_hub_download,
        hf_hub_url,
        try_to_load_from_cache,
    )
    from huggingface_hub.utils.tqdm import disable_progress_bars

    disable_progress_bars()
    cache = cache_folder()
    folder = cache / "hub" if cache else None
    how: dict[str, Any] = {
        "repo_type": "dataset",
        "revision": home.revision,
        "library_name": "jurygraph",
    }
    how |= {"cache_dir": folder, "endpoint": os.environ.get("HF_ENDPOINT")}
    kept: dict[str, Any] = {"repo_type": "dataset", "revision": home.revision}
    for name, known in zip(files, home.sha256, strict=True):
        if not isinstance(
            try_to_load_from_cache(home.repository, name, cache_dir=folder, **kept), str
        ):
            url = hf_hub_url(home.repository, name, endpoint=how["endpoint"], **kept)
            size = (
                get_hf_file_metadata(url, library_name="jurygraph", endpoint=how["endpoint"]).size
                or 0
            )
            if size > MOST_BYTES:
                raise _too_large(f"{name} of {home.repository}", f"{size:,} bytes")
        path = Path(hf_hub_download(home.repository, name, **how))
        if (digest := sha256(path)) != known:
            # The Hub's cache has a link from each revision to the content: delete both, or the
            # content stays.
            path.resolve().unlink()
            path.unlink(missing_ok=True)
            raise DataError(
                f"{name} of {home.repository}: has the SHA-256 {digest[:12]}..., but should have "
                f"{known[:12]}...; it was removed from the cache"
            )
    # The revision's folder is as many levels above a file as its name has parts, for each file.
    return path.parents[len(PurePosixPath(name).parts) - 1]


def _reason(error: BaseException) -> str:
    """Describe an error's innermost cause in one line, because clients wrap errors repeatedly."""
    while deeper := error.__cause__ or error.__context__:
        error = deeper
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror} ({error.filename})" if error.filename else error.strerror
    first, *_ = str(error).splitlines() or [type(error).__name__]
    return first if len(first) <= 200 else f"{first[:200]}..."


def cache_folder() -> Path | None:
    """Return the folder from ``JURYGRAPH_CACHE``; ``None`` for the default of each package."""
    folder = os.environ.get("JURYGRAPH_CACHE")
    return Path(folder).expanduser() if folder else None


def git_blob(path: Path) -> str:
    """Return git's id of a file's content: the SHA-1 of a short header and the content."""
    # Python builds with restricted cryptography refuse SHA-1 unless it is not for security.
    begun = hashlib.sha1(b"blob %d\0" % path.stat().st_size, usedforsecurity=False)
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: begun).hexdigest()


log = logging.getLogger("jurygraph.data")


PATIENCE = RetryPolicy(attempts=3, timeout=30.0, first_wait=1.0, longest_wait=20.0)
"""The number of download attempts and the waits between them."""


def fetch_from_github(home: GitHub, files: Sequence[str]) -> Path:
    """Download the missing files of a commit, and return their folder.

    The folder is laid out as in the repository. If all files and the commit's file list exist,
    there is no network access.

    Raises:
        DataError: the commit does not have a file, or the content does not match the commit.
        OSError: the download failed in every attempt.
    """
    import pooch

    folder = (
        (cache_folder() or Path(pooch.os_cache("jurygraph")))
        / "github"
        / home.repository
        / home.commit
    )
    base = os.environ.get("JURYGRAPH_GITHUB_RAW", "https://raw.githubusercontent.com").rstrip("/")
    blobs = _blobs(home, folder.with_name(f"{home.commit}.tree.json"))
    for name in files:
        if name not in blobs:
            raise DataError(f"{home.repository} has no {name} at {home.commit}")
        path = folder / name
        blob = blobs[name]
        if not (was_there := path.exists()):
            _download(f"{base}/{home.repository}/{home.commit}/{quote(name)}", path)
        if (content := git_blob(path)) != blob:
            differs = f"(git blob {content[:12]}..., should be {blob[:12]}...)"
            if was_there:
                raise DataError(
                    f"{path}: was changed after the download {differs}; "
                    "delete it to download it again"
                )
            path.unlink()
            raise DataError(
                f"{path.name} of {home.repository}: the download is not the file of commit "
                f"{home.commit[:12]} {differs} and was deleted; try again"
            )
    return folder


def _blobs(home: GitHub, path: Path) -> dict[str, str]:
    """Return the content address of each file of a commit by its path.

    A commit never changes, so the answer is stored in a file and requested once.
    """
    base = os.environ.get("JURYGRAPH_GITHUB_API", "https://api.github.com").rstrip("/")
    _download(f"{base}/repos/{home.repository}/git/trees/{home.commit}?recursive=1", path)
    try:
        entries = json.loads(path.read_bytes())["tree"]
        return {entry["path"]: entry["sha"] for entry in entries if entry["type"] == "blob"}
    except (ValueError, KeyError, TypeError) as error:
        path.unlink()  # else the next run would read the same answer
        raise DataError(
            f"{base}: not a GitHub API: cannot list the files of {home.repository}"
        ) from error


def _download(url: str, path: Path) -> None:
    """Download a file completely, or not at all."""
    import pooch
    import requests

    # Without a known hash, pooch logs each download and its hash. The caller checks the content,
    # and the download is logged below.
    pooch.get_logger().setLevel("WARNING")
    log.info("fetching", extra={"url": url})
    client = pooch.HTTPDownloader(timeout=PATIENCE.timeout)

    def bounded(url: str, output: str, of: Any) -> None:
        with Path(output).open("w+b") as file:
            client(url, _BoundedFile(file, path.name), of)

    stop = stop_after_attempt(PATIENCE.attempts)
    retry = retry_if_exception(_may_pass)
    for attempt in Retrying(stop=stop, retry=retry, wait=_wait, reraise=True):
        with attempt:
            try:
                pooch.retrieve(
                    url, known_hash=None, fname=path.name, path=path.parent, downloader=bounded
                )
            except requests.RequestException as error:
                # pooch does not close the connection of a response with an error status.
                if error.response is not None:
                    error.response.close()
                raise


class _BoundedFile:
    """A file that refuses more than ``MOST_BYTES``, whatever size the server states."""

    def __init__(self, file: BinaryIO, name: str) -> None:
        self._file = file
        self._name = name
        self._written = 0

    def write(self, piece: bytes) -> int:
        self._written += len(piece)
        if self._written > MOST_BYTES:
            raise _too_large(self._name, "more bytes")
        return self._file.write(piece)

    def flush(self) -> None:
        self._file.flush()


def _may_pass(error: BaseException) -> bool:
    """Return whether a retry may succeed: no answer, too many requests, or a server error."""
    from ...nodes.models.provider_errors import ProviderFault

    return ProviderFault(error).retryable


def _wait(state: RetryCallState) -> float:
    """Return the seconds to wait: as the server asks, or doubled each time, up to the limit."""
    from ...nodes.models.provider_errors import ProviderFault

    error = state.outcome.exception() if state.outcome else None
    asked = ProviderFault(error).retry_after if error else None
    wait = PATIENCE.first_wait * 2 ** (state.attempt_number - 1) if asked is None else asked
    return min(wait, PATIENCE.longest_wait)
