"""Progress of a run: one rewritten line on a terminal, an occasional line elsewhere."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final

from unreel.cli.output import say
from unreel.core.plain import plain

if TYPE_CHECKING:
    from unreel.engine.progress import Progress

PIPE_PAUSE_S: Final = 10.0
"""Off a terminal, lines come no closer than this: a log is read later."""
COST: Final = "cost_usd"
"""The total of a run that is money."""
_COPY: Final = "frames of annotated.mp4"
_CAUSES: Final = 3
_MINUTE_S: Final = 60
_HOUR_S: Final = 3600


class Meter:
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
        self._clock, self._terminal = clock, terminal
        self._whose = ""
        self._phase = ""
        self._part = ""
        self._due: int | None = None
        self._progress: Progress | None = None
        self.cost_usd: float | None = None
        """What the rows so far cost; `None` where no price is known."""
        self._n_of_part: dict[str, int] = {}
        self._began_s = clock()
        self._told_s: float | None = None
        self._told = ""
        self._open = ExitStack()
        self._live: Any = None

    def __enter__(self) -> "Meter":
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

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._open.close()

    def begin(self, whose: str = "") -> None:
        """Another run begins; where there are several, its lines start with `whose` it is."""
        self._whose, self._part, self._due, self.cost_usd = whose, "", None, None
        self._progress, self._n_of_part = None, {}

    def tell(self, phase: str) -> None:
        """Something begins whose length nobody knows."""
        self._phase, self._part, self._began_s = phase, "", self._clock()
        self._refresh()

    def expect(self, part: str, due: int) -> None:
        """A part begins, with so many rows to come."""
        self._part, self._due, self._began_s = part, due, self._clock()
        self._progress = None
        self._refresh()

    def step(self, part: str, progress: "Progress") -> None:
        """Rows of a part were committed."""
        if part != self._part:
            self._part, self._due = part, None
        self._progress = progress
        self._n_of_part[part] = progress.done + progress.failed
        self.cost_usd = progress.totals.get(COST, self.cost_usd)
        if self._live is None and self._is_time():
            self._say()
        self._refresh()

    def spell_rows(self) -> str:
        """Return the number of committed rows as text; "" if there are none."""
        return ", ".join(f"{n:,} rows of {part}" for part, n in self._n_of_part.items() if n)

    def _line(self) -> str:
        seconds = self._clock() - self._began_s
        if not self._part:
            passed = f", {spell_time(seconds)}" if self._live and seconds >= 1 else ""
            return f"{self._whose}{self._phase}{passed}"
        progress = self._progress or _nothing()
        return self._whose + describe(self._part, progress, due=self._due, seconds=seconds)

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
        say(self._told)

    def _tick(self, ended: threading.Event) -> None:
        while not ended.wait(PIPE_PAUSE_S):
            if self._is_time() and self._line() != self._told:
                self._say()


def _nothing() -> "Progress":
    from unreel.engine.progress import Progress

    return Progress()


@contextmanager
def copy_meter(n_frames: int) -> Iterator[Callable[[int], None]]:
    """Tells how far an annotated copy of so many frames is, whenever it is called with their number."""
    from unreel.engine.progress import Progress

    with Meter() as meter:
        meter.expect(_COPY, n_frames)
        yield lambda done: meter.step(_COPY, Progress(done=done))


def describe(part: str, progress: "Progress", *, due: int | None, seconds: float) -> str:
    """One line: done of due, rate, remaining time, money, and failures by cause."""
    n = progress.done + progress.failed
    rate = n / seconds if seconds > 0 else 0.0
    told = [f"{part}: {n:,}" + ("" if due is None else f" of {due:,}")]
    if n:
        told.append(f"{rate:.1f}/s")
    if due is not None and rate > 0 and due > n:
        told.append(f"{spell_time((due - n) / rate)} left")
    if progress.note:
        told.append(progress.note)
    if COST in progress.totals:
        told.append(spell_cost(progress.totals[COST]))
    if progress.failed:
        causes = [f"{count:,} {reason}" for reason, count in progress.failures.most_common(_CAUSES)]
        told.append(f"{progress.failed:,} failed ({', '.join(causes)})")
    return ", ".join(told)


def spell_time(seconds: float) -> str:
    """`8 s`, `4 min 10 s` or `2 h 05 min`."""
    whole = round(seconds)
    if whole < _MINUTE_S:
        return f"{whole} s"
    if whole < _HOUR_S:
        return f"{whole // _MINUTE_S} min {whole % _MINUTE_S:02d} s"
    return f"{whole // _HOUR_S} h {whole % _HOUR_S // _MINUTE_S:02d} min"


def spell_cost(cost_usd: float) -> str:
    """Dollars with cents, and with more places where cents would say nothing."""
    return f"{cost_usd:,.2f} USD" if cost_usd >= 1 else f"{cost_usd:.4f} USD"
