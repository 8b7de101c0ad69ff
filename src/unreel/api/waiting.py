"""Waiting for a coroutine from a plain function, inside a running event loop too."""

import asyncio
from collections.abc import Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from typing import Any, TypeVar

T = TypeVar("T")


def wait_for(work: Coroutine[Any, Any, T]) -> T:
    """Return the result of `work`. In a notebook, where a loop already runs, it uses a separate thread."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    begun: Future[tuple[asyncio.AbstractEventLoop, asyncio.Task[T]]] = Future()

    async def told() -> T:
        task = asyncio.create_task(work)
        begun.set_result((asyncio.get_running_loop(), task))
        return await task

    with ThreadPoolExecutor(1, "unreel") as aside:
        waiting = aside.submit(copy_context().run, asyncio.run, told())
        try:
            return waiting.result()
        except KeyboardInterrupt:
            loop, task = begun.result()
            with suppress(RuntimeError):  # it ended in this moment
                loop.call_soon_threadsafe(task.cancel)
            raise
