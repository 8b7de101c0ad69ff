"""Progress of a run: one rewritten line on a terminal, an occasional line elsewhere."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Final

from unreel.cli.output import print_message
from unreel.core.plain import plain
from unreel.engine.progress import Progress
from unreel.engine.progress_line import ProgressLine

PIPE_PAUSE_S: Final = 10.0
"""Off a terminal, lines come no closer than this: a log is read later."""
_COPY: Final = "frames of annotated.mp4"


class ProgressMeter(ProgressLine):
    """Told of each commit, it tells the person. Use it with `with`; it writes to stderr alone.

    On a terminal one line says from the first moment what is going on. Elsewhere a line comes with the
    first commit, and then now and then, also where nothing moves.

    Args:
        clock: seconds that only grow.
        terminal: whether one line is rewritten; found out by itself.
    """

    def __init__(
        self, *, clock: Callable[[], float] = time.monotonic, terminal: bool | None = None
    ) -> None:
        super().__init__(clock=clock)
        self._terminal = terminal
        self._told_s: float | None = None
        self._told = ""
        self._open = ExitStack()
        self._live: Any = None

    def __enter__(self) -> "ProgressMeter":
        from rich.live import Live

        from unreel.cli.console import open_console

        console = open_console(stderr=True)
        if console.is_terminal if self._terminal is None else self._terminal:
            live = Live(console=console, transient=True, get_renderable=self._render)
            self._live = self._open.enter_context(live)
        else:
            ended = threading.Event()
            ticking = threading.Thread(target=self._tick, args=(ended,), daemon=True)
            ticking.start()
            self._open.callback(ended.set)
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def tell(self, phase: str) -> None:
        """Something begins whose length nobody knows."""
        super().tell(phase)
        self._refresh()

    def expect(self, part: str, due: int) -> None:
        """A part begins, with so many rows to come."""
        super().expect(part, due)
        self._refresh()

    def step(self, part: str, progress: Progress) -> None:
        """Rows of a part were committed."""
        super().step(part, progress)
        if self._live is None and self._is_time():
            self._say()
        self._refresh()

    def _line(self) -> str:
        return self.text(with_time=self._live is not None)

    def _render(self) -> Any:
        from rich.text import Text

        return Text(plain(self._line()), no_wrap=True, overflow="ellipsis")

    def _refresh(self) -> None:
        if self._live is not None:
            self._live.refresh()

    def _is_time(self) -> bool:
        return self._told_s is None or self._clock() - self._told_s >= PIPE_PAUSE_S

    def _say(self) -> None:
        self._told_s, self._told = self._clock(), self._line()
        print_message(self._told)

    def _tick(self, ended: threading.Event) -> None:
        while not ended.wait(PIPE_PAUSE_S):
            if self._is_time() and self._line() != self._told:
                self._say()


@contextmanager
def copy_meter(n_frames: int) -> Iterator[Callable[[int], None]]:
    """Tells how far an annotated copy of so many frames is, whenever it is called with their number."""
    with ProgressMeter() as meter:
        meter.expect(_COPY, n_frames)
        yield lambda done: meter.step(_COPY, Progress(done=done))
