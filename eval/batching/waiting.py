"""Waiting that ends when the run does."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import suppress

from ..running.stopping import Stop


async def unless_stopped(stop: Stop, work: Coroutine[None, None, None]) -> None:
    """Do the work; leave it where it is as soon as the run is to end."""
    doing = asyncio.ensure_future(work)
    asked = asyncio.ensure_future(stop.asked())
    try:
        await asyncio.wait({doing, asked}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        asked.cancel()
        if not doing.done():
            doing.cancel()
    with suppress(asyncio.CancelledError):
        await doing
