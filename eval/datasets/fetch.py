"""Fetch published files once, and check what came.

- From the Hugging Face Hub with ``huggingface_hub``, at a fixed revision, into its cache; checked against the SHA-256
  that the Hub states for the file, which is written down in the catalogue.
- From GitHub with ``pooch``, at a fixed commit; checked against the content address (git's blob id) that GitHub's API
  states for the file in that commit. The list of these is kept beside the files, and what differs from it later is
  refused.

``HF_ENDPOINT``, ``JURYGRAPH_GITHUB_RAW`` and ``JURYGRAPH_GITHUB_API`` name mirrors; ``JURYGRAPH_CACHE`` the cache.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import logging
import os
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import quote

from tenacity import RetryCallState, Retrying, retry_if_exception, stop_after_attempt

from ...nodes.models.retry import RetryPolicy
from ...state.errors import DataError, JurygraphError, UsageError
from .catalog import GitHub, HuggingFace, Source
from .files import sha256


def fetch(source: Source) -> Path:
    """Fetch a dataset's published files if they are not there yet, and return the folder that holds them.

    Raises:
        UsageError: a package that is needed is not installed.
        DataError: they cannot be fetched, or are not what they should be.
    """
    assert source.home is not None
    home, files = source.home, source.forms[0].files
    instead = f"give the folder that holds {source.wanted} with --data-dir (data_dir=)"
    # Each package with the extra that it belongs to.
    needed = {"pooch" if isinstance(home, GitHub) else "huggingface_hub": "hub"}
    if any(name.endswith(".parquet") for name in files):
        needed["pyarrow"] = "frames"
    if missing := [name for name in needed if importlib.util.find_spec(name) is None]:
        lacking = f"{missing[0]}, which fetches or reads it, is not installed"
        install = f'pip install "jurygraph[{",".join(needed.values())}]"'
        raise UsageError(f"{source.name} is not bundled, and {lacking}: {install}, or {instead}")
    try:
        return fetch_from_github(home, files) if isinstance(home, GitHub) else _fetch_from_hub(home, files)
    except JurygraphError:
        raise
    except Exception as error:  # the clients raise what their own clients raise, down to the socket
        problem = f"{source.name} could not be fetched from {home.address}: {_reason(error)}"
        raise DataError(f"{problem}; try again, or {instead}") from error


def _fetch_from_hub(home: HuggingFace, files: Sequence[str]) -> Path:
    from huggingface_hub import hf_hub_download
    from huggingface_hub.utils.tqdm import disable_progress_bars

    disable_progress_bars()
    cache = cache_folder()
    folder = cache / "hub" if cache else None
    how: dict[str, Any] = {"repo_type": "dataset", "revision": home.revision, "library_name": "jurygraph"}
    how |= {"cache_dir": folder, "endpoint": os.environ.get("HF_ENDPOINT")}
    for name, known in zip(files, home.sha256, strict=True):
        path = Path(hf_hub_download(home.repository, name, **how))
        if (digest := sha256(path)) != known:
            # The Hub's cache keeps a link for each revision to the content: both go, else the content stays.
            path.resolve().unlink()
            path.unlink(missing_ok=True)
            differs = f"has the SHA-256 {digest[:12]}..., but should have {known[:12]}..."
            raise DataError(f"{name} of {home.repository}: {differs}; it was removed from the cache")
    # Up from a file by as many steps as its name has parts: the folder of the revision, the same for all files.
    return path.parents[len(PurePosixPath(name).parts) - 1]


def _reason(error: BaseException) -> str:
    """Describe an error's innermost cause in one line: clients wrap it in errors of their own, often in several."""
    while deeper := error.__cause__ or error.__context__:
        error = deeper
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror} ({error.filename})" if error.filename else error.strerror
    first, *_ = str(error).splitlines() or [type(error).__name__]
    return first if len(first) <= 200 else f"{first[:200]}..."


def cache_folder() -> Path | None:
    """Return the folder that ``JURYGRAPH_CACHE`` names; ``None`` for the fetching packages' own."""
    folder = os.environ.get("JURYGRAPH_CACHE")
    return Path(folder).expanduser() if folder else None


def git_blob(path: Path) -> str:
    """Return the id that git gives a file's content: the SHA-1 of a short header and the content."""
    # Declared as no security measure, since Python builds with restricted cryptography refuse SHA-1 otherwise.
    begun = hashlib.sha1(b"blob %d\0" % path.stat().st_size, usedforsecurity=False)
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: begun).hexdigest()


log = logging.getLogger("jurygraph.data")


PATIENCE = RetryPolicy(attempts=3, timeout=30.0, first_wait=1.0, longest_wait=20.0)
"""How often a download is attempted, and how long it waits in between."""


def fetch_from_github(home: GitHub, files: Sequence[str]) -> Path:
    """Fetch the missing files of a commit, and return their folder, laid out as in the repository.

    If all files and the list of the commit's are there, nothing is asked of the network.

    Raises:
        DataError: a file that the commit does not have, or whose content is not the commit's, or no longer.
        OSError: a download that failed for good.
    """
    import pooch

    folder = (cache_folder() or Path(pooch.os_cache("jurygraph"))) / "github" / home.repository / home.commit
    base = os.environ.get("JURYGRAPH_GITHUB_RAW", "https://raw.githubusercontent.com").rstrip("/")
    blobs = _blobs(home, folder.with_name(f"{home.commit}.tree.json"))
    for name in files:
        if name not in blobs:
            raise DataError(f"{home.repository} has no {name} at {home.commit}")
        path, blob = folder / name, blobs[name]
        if not (was_there := path.exists()):
            _download(f"{base}/{home.repository}/{home.commit}/{quote(name)}", path)
        if (content := git_blob(path)) != blob:
            differs = f"(git blob {content[:12]}..., should be {blob[:12]}...)"
            if was_there:
                changed = f"was changed after the download {differs}"
                raise DataError(f"{path}: {changed}; delete it to download it again")
            path.unlink()
            problem = f"the download is not the file of commit {home.commit[:12]} {differs}"
            raise DataError(f"{path.name} of {home.repository}: {problem} and was deleted; try again")
    return folder


def _blobs(home: GitHub, path: Path) -> dict[str, str]:
    """Return the content address of each file of a commit by its path.

    A commit never changes: the answer is kept in a file, and asked for once.
    """
    base = os.environ.get("JURYGRAPH_GITHUB_API", "https://api.github.com").rstrip("/")
    _download(f"{base}/repos/{home.repository}/git/trees/{home.commit}?recursive=1", path)
    try:
        entries = json.loads(path.read_bytes())["tree"]
        return {entry["path"]: entry["sha"] for entry in entries if entry["type"] == "blob"}
    except (ValueError, KeyError, TypeError) as error:
        path.unlink()  # else the same answer would be read again next time
        raise DataError(f"{base}: not a GitHub API: cannot list the files of {home.repository}") from error


def _download(url: str, path: Path) -> None:
    """Fetch a file, which is there as a whole or not at all."""
    import pooch
    import requests

    # With no known hash, pooch logs each download and its hash: the caller checks the content, and we log below.
    pooch.get_logger().setLevel("WARNING")
    log.info("fetching", extra={"url": url})
    client = pooch.HTTPDownloader(timeout=PATIENCE.timeout)
    stop, retry = stop_after_attempt(PATIENCE.attempts), retry_if_exception(_may_pass)
    for attempt in Retrying(stop=stop, retry=retry, wait=_wait, reraise=True):
        with attempt:
            try:
                pooch.retrieve(url, known_hash=None, fname=path.name, path=path.parent, downloader=client)
            except requests.RequestException as error:
                # Of a response whose status is an error, pooch does not close the connection.
                if error.response is not None:
                    error.response.close()
                raise


def _may_pass(error: BaseException) -> bool:
    """Tell whether a download may succeed later: no answer, too many requests, or a server in trouble."""
    from ...nodes.models.provider_errors import ProviderFault

    return ProviderFault(error).retryable


def _wait(state: RetryCallState) -> float:
    """Return the seconds to wait: as the server asks, else twice as long each time; at most the longest wait."""
    from ...nodes.models.provider_errors import ProviderFault

    error = state.outcome.exception() if state.outcome else None
    asked = ProviderFault(error).retry_after if error else None
    wait = PATIENCE.first_wait * 2 ** (state.attempt_number - 1) if asked is None else asked
    return min(wait, PATIENCE.longest_wait)
