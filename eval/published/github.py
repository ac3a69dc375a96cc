"""Files of a GitHub repository at one commit, each checked against the content address that the commit gives it."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tenacity import RetryCallState, Retrying, retry_if_exception, stop_after_attempt

from ...state.errors import DataError
from .cache import Sums, cache_folder, git_blob
from .source import GitHub

RAW, API = "JURYGRAPH_GITHUB_RAW", "JURYGRAPH_GITHUB_API"
log = logging.getLogger("jurygraph.data")


@dataclass(frozen=True)
class Patience:
    """How often a download is attempted, and how long it waits in between, in seconds."""

    attempts: int = 3
    first_wait: float = 1.0
    longest_wait: float = 20.0
    timeout: float = 30.0


PATIENCE = Patience()


def fetch_from_github(home: GitHub, files: Sequence[str]) -> Path:
    """The folder that holds a commit's files, laid out as in the repository; no network where all are there.

    Raises:
        DataError: a file that the commit does not have, or whose content is not the commit's.
        OSError: a download that failed for good.
    """
    folder = _commits() / home.repository / home.commit
    sums = Sums(folder)
    if missing := [name for name in files if not sums.holds(name)]:
        blobs = _blobs(home)
        for name in missing:
            if name not in blobs:
                raise DataError(f"{home.repository} has no {name} at {home.commit}")
            _download(_raw_url(home, name), folder / name)
            _check(folder / name, blobs[name], home)
            sums.add(name)
    return folder


def _commits() -> Path:
    import pooch

    return (cache_folder() or Path(pooch.os_cache("jurygraph"))) / "github"


def _check(path: Path, blob: str, home: GitHub) -> None:
    if (found := git_blob(path)) != blob:
        path.unlink()
        raise DataError(
            f"{path.name} of {home.repository}: what came is not the file of commit {home.commit[:12]} "
            f"(git blob {found[:12]}..., should be {blob[:12]}...); it was thrown away, try again"
        )


def _blobs(home: GitHub) -> dict[str, str]:
    """Path to content address of all files of the commit; a commit never changes, so it is asked for once."""
    path = _commits() / home.repository / f"{home.commit}.tree.json"
    base = os.environ.get(API, "https://api.github.com").rstrip("/")
    _download(f"{base}/repos/{home.repository}/git/trees/{home.commit}?recursive=1", path)
    try:
        entries = json.loads(path.read_bytes())["tree"]
        return {entry["path"]: entry["sha"] for entry in entries if entry["type"] == "blob"}
    except (ValueError, KeyError, TypeError) as error:
        path.unlink()
        raise DataError(f"{base}: is no GitHub API: cannot tell the files of {home.repository}") from error


def _raw_url(home: GitHub, name: str) -> str:
    base = os.environ.get(RAW, "https://raw.githubusercontent.com").rstrip("/")
    return f"{base}/{home.repository}/{home.commit}/{quote(name)}"


def _download(url: str, path: Path) -> None:
    """Fetch a file unless it is there; a file is there as a whole or not at all."""
    import pooch

    pooch.get_logger().setLevel("WARNING")
    if not path.exists():
        log.info("fetching", extra={"url": url})
    client = pooch.HTTPDownloader(timeout=PATIENCE.timeout)
    for attempt in Retrying(
        stop=stop_after_attempt(PATIENCE.attempts),
        retry=retry_if_exception(_may_pass),
        wait=_wait,
        reraise=True,
    ):
        with attempt:
            pooch.retrieve(url, known_hash=None, fname=path.name, path=path.parent, downloader=client)


def _may_pass(error: BaseException) -> bool:
    """Whether the same download may succeed later: no answer, too many requests, a server in trouble."""
    import requests

    if not isinstance(error, requests.RequestException):
        return False
    return error.response is None or error.response.status_code == 429 or error.response.status_code >= 500


def _wait(state: RetryCallState) -> float:
    """What the server asks for, if that is not long, else twice as long each time."""
    response: Any = getattr(state.outcome.exception() if state.outcome else None, "response", None)
    asked = response.headers.get("Retry-After", "") if response is not None else ""
    wait = float(asked) if asked.isdigit() else PATIENCE.first_wait * 2 ** (state.attempt_number - 1)
    return min(wait, PATIENCE.longest_wait)
