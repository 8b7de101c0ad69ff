"""Waiting for a coroutine from a plain function, inside a running event loop too."""

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")


def wait_for(work: Coroutine[Any, Any, T]) -> T:
    """What `work` returns. In a notebook a loop runs already: then it gets a thread of its own."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    with ThreadPoolExecutor(1, "unreel") as aside:
        return aside.submit(asyncio.run, work).result()
