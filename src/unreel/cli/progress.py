"""Progress display of a command: one rewritten line on a terminal, an occasional line elsewhere."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from unreel.cli.output import print_message
from unreel.core.safe_text import sanitise_line
from unreel.engine.progress import Progress, ProgressLine

PIPE_PAUSE_S = 10.0
"""Minimum seconds between progress lines outside a terminal, because a log is read later."""
_COPY = "frames of annotated.mp4"


class ProgressMeter(ProgressLine):
    """Progress display on stderr, updated at each commit. Use it with `with`.

    On a terminal one line shows the current activity from the start. Elsewhere a line appears with
    the first commit, and then periodically, also without progress.

    Args:
        clock: Monotonic seconds.
        terminal: Whether one line is rewritten; detected automatically.
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
        """Show the name of an activity whose length is unknown."""
        super().tell(phase)
        self._refresh()

    def expect(self, part: str, due: int) -> None:
        """Show the beginning of a part of the work that has `due` rows."""
        super().expect(part, due)
        self._refresh()

    def step(self, part: str, progress: Progress) -> None:
        """Show the progress of a part of the work; call it after rows were committed."""
        super().step(part, progress)
        if self._live is None and self._is_time():
            self._say()
        self._refresh()

    def _line(self) -> str:
        return self.text(with_time=self._live is not None)

    def _render(self) -> Any:
        from rich.text import Text

        return Text(sanitise_line(self._line()), no_wrap=True, overflow="ellipsis")

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
def show_video_copy_progress(n_frames: int) -> Iterator[Callable[[int], None]]:
    """Show the progress of a copy of `n_frames` frames; yield a callback for the finished number."""
    with ProgressMeter() as meter:
        meter.expect(_COPY, n_frames)
        yield lambda done: meter.step(_COPY, Progress(done=done))
