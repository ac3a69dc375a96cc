"""Fetching published files from their homes with the homes' own clients, once, and checking what came.

- From the Hugging Face Hub with ``huggingface_hub``, at a fixed revision, into its cache; checked against the SHA-256
  that the Hub states for the file, which is written down in the catalogue.
- From GitHub with ``pooch``, at a fixed commit; checked against the content address (git's blob id) that GitHub's API
  states for the file in that commit. The SHA-256 that it has then is written down beside it, and what differs from it
  later is refused.

``HF_ENDPOINT``, ``JURYGRAPH_GITHUB_RAW`` and ``JURYGRAPH_GITHUB_API`` name mirrors; ``JURYGRAPH_CACHE`` the cache.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from ...state.errors import DataError, JurygraphError, UsageError
from .cache import cache_folder, sha256
from .github import fetch_from_github
from .source import GitHub, HuggingFace, Source


def fetch(source: Source) -> Path:
    """The folder that holds a dataset's published files, fetched if they are not there yet.

    Raises:
        UsageError: a package that is needed is not installed.
        DataError: they cannot be fetched, or are not what they should be.
    """
    assert source.home is not None
    files = source.forms[0].files
    _check_packages(source)
    try:
        if isinstance(source.home, GitHub):
            return fetch_from_github(source.home, files)
        return _fetch_from_hub(source.home, files)
    except JurygraphError:
        raise
    except Exception as error:  # the clients raise what their own clients raise, down to the socket
        raise DataError(
            f"{source.name} could not be fetched from {source.home.address}: {_reason(error)}; "
            f"try again, or {_instead(source)}"
        ) from error


def _instead(source: Source) -> str:
    return f"give the folder that holds {source.wanted} with --data-dir (data_dir=)"


def _check_packages(source: Source) -> None:
    needed = ["pooch"] if isinstance(source.home, GitHub) else ["huggingface_hub"]
    extras = ["hub"]
    if any(name.endswith(".parquet") for name in source.forms[0].files):
        needed.append("pyarrow")
        extras.append("frames")
    if missing := [name for name in needed if not _is_installed(name)]:
        raise UsageError(
            f"{source.name} is not bundled, and {missing[0]}, which fetches or reads it, is not installed: "
            f'pip install "jurygraph[{",".join(extras)}]", or {_instead(source)}'
        )


def _is_installed(package: str) -> bool:
    from importlib.util import find_spec

    return find_spec(package) is not None


def _fetch_from_hub(home: HuggingFace, files: Sequence[str]) -> Path:
    folders = set()
    for name, known in zip(files, home.sha256, strict=True):
        path = Path(_hub_file(home, name))
        if (found := sha256(path)) != known:
            path.resolve().unlink()
            path.unlink(missing_ok=True)
            raise DataError(
                f"{name} of {home.repository}: has the SHA-256 {found[:12]}... and should have {known[:12]}...; "
                "it was removed from the cache"
            )
        folders.add(path.parents[len(PurePosixPath(name).parts) - 1])
    return folders.pop()


def _hub_file(home: HuggingFace, name: str) -> str:
    from huggingface_hub import hf_hub_download
    from huggingface_hub.utils.tqdm import disable_progress_bars

    disable_progress_bars()
    folder = cache_folder()
    return hf_hub_download(
        home.repository,
        name,
        repo_type="dataset",
        revision=home.revision,
        cache_dir=folder / "hub" if folder else None,
        endpoint=os.environ.get("HF_ENDPOINT"),
        library_name="jurygraph",
    )


def _reason(error: BaseException) -> str:
    """What it came down to, as one line: clients wrap what happened in words of their own, often several times."""
    while deeper := error.__cause__ or error.__context__:
        error = deeper
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror} ({error.filename})" if error.filename else error.strerror
    first, *_ = str(error).splitlines() or [type(error).__name__]
    return first if len(first) <= 200 else f"{first[:200]}..."
