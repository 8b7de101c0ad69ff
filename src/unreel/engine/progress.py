"""Progress of a job, and the callbacks that report it."""

import time
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(slots=True)
class Progress:
    """Counts of the rows that a run has committed so far."""

    done: int = 0
    failures: Counter[str] = field(default_factory=Counter)
    totals: dict[str, float] = field(default_factory=dict)
    """Totals of the job over its rows, by name; missing (not 0) while no row reports them."""

    due: int | None = field(default=None, compare=False)
    """Number of rows of this run; `None` until all its questions are read."""

    note: str = ""
    """Additional text about the last row, such as the loss of a training step."""

    @property
    def failed(self) -> int:
        """Return the number of failed rows."""
        return sum(self.failures.values())


OnStep = Callable[[str, Progress], None]
"""Callback after rows of a part were committed, called from another thread."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobCallbacks:
    """Callbacks through which a job reports its progress."""

    on_begin: Callable[[str], None] = lambda _title: None
    """Callback with the name of the entrant whose run begins."""
    on_due: Callable[[str, int], None] = lambda _part, _due: None
    """Callback with a part and its number of due rows; not called if that is not known in time."""
    on_step: OnStep = lambda _part, _progress: None
    on_phase: Callable[[str], None] = lambda _phase: None
    """Callback with the name of the activity that begins between two parts."""
    on_note: Callable[[str], None] = lambda _note: None
    """Callback with a message for the user about a run that continues."""
    observe: Callable[[str, int], None] = lambda _step, _rows: None
    """Callback with each step of a commit, by part and name (`answers-written`), for tests that kill a job."""


NO_CALLBACKS = JobCallbacks()


COST = "cost_usd"
"""Name of the total that is the cost of a run."""
_CAUSES = 3
_MINUTE_S = 60
_SLOW = 0.05
"""Rows per second below which a rate is printed per minute."""
_HOUR_S = 3600


class ProgressLine:
    """One-line progress text of a job; a display calls `text` to refresh it."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._whose = ""
        self._phase = ""
        self._part = ""
        self._due: int | None = None
        self._progress: Progress | None = None
        self.cost_usd: float | None = None
        """Cost of the rows so far; `None` if no price is known."""
        self._n_of_part: dict[str, int] = {}
        self._began_s = clock()
        self._recent: deque[tuple[float, int]] = deque()
        """Times of recent commits, with the number of rows until then; the first is before them."""

    def begin(self, whose: str = "") -> None:
        """Reset the progress for a new run; `whose` is the prefix of its lines if there are several runs."""
        self._whose, self._part, self._due, self.cost_usd = whose, "", None, None
        self._progress, self._n_of_part = None, {}

    def tell(self, phase: str) -> None:
        """Show that the activity `phase` begins, whose number of rows is unknown."""
        self._phase, self._part, self._began_s = phase, "", self._clock()
        self._recent.clear()

    def expect(self, part: str, due: int) -> None:
        """Show that the part `part` of the job begins, with `due` rows to do."""
        self._part, self._due, self._began_s = part, due, self._clock()
        self._progress = None
        self._recent.clear()

    def step(self, part: str, progress: Progress) -> None:
        """Update the progress after rows of a part were committed."""
        if part != self._part:
            self._part, self._due = part, None
            self._recent.clear()
        self._progress = progress
        now_s = self._clock()
        self._recent = self._recent or deque([(self._began_s, 0)])
        self._recent.append((now_s, progress.done + progress.failed))
        while len(self._recent) > 2 and self._recent[1][0] < now_s - _MINUTE_S:  # noqa: PLR2004  a rate needs two
            self._recent.popleft()
        self._due = self._due if progress.due is None else progress.due
        self._n_of_part[part] = progress.done + progress.failed
        self.cost_usd = progress.totals.get(COST, self.cost_usd)

    def callbacks(self, *, on_note: Callable[[str], None] = lambda _note: None) -> JobCallbacks:
        """Return callbacks of a job that keep this line up to date."""
        return JobCallbacks(
            on_begin=lambda title: self.begin(f"{title}: "),
            on_due=self.expect,
            on_step=self.step,
            on_phase=self.tell,
            on_note=on_note,
        )

    def spell_rows(self) -> str:
        """Return the number of committed rows as text; "" if there are none."""
        return ", ".join(f"{n:,} rows of {part}" for part, n in self._n_of_part.items() if n)

    @property
    def share(self) -> float | None:
        """Return the finished fraction of the current part, 0 to 1; `None` if its length is unknown."""
        if not self._part or not self._due:
            return None
        progress = self._progress or Progress()
        return min(1.0, (progress.done + progress.failed) / self._due)

    def text(self, *, with_time: bool = True) -> str:
        """Return the progress line; `with_time` adds the seconds of a phase whose length is unknown."""
        seconds = self._clock() - self._began_s
        if not self._part:
            passed = f", {format_duration(seconds)}" if with_time and seconds >= 1 else ""
            return f"{self._whose}{self._phase}{passed}"
        rate, last_s = 0.0, self._clock()
        if self._recent:
            (first_s, n_first), (last_s, n_last) = self._recent[0], self._recent[-1]
            rate = (n_last - n_first) / (last_s - first_s) if last_s > first_s else 0.0
        return self._whose + format_progress_line(
            self._part,
            self._progress or Progress(),
            due=self._due,
            rate=rate,
            waited_s=self._clock() - last_s,
        )


def format_progress_line(
    part: str, progress: Progress, *, due: int | None, rate: float, waited_s: float = 0.0
) -> str:
    """Return the progress as one line: rows done of due, rate, remaining time, note, cost, failures.

    `rate` is in rows per second until `waited_s` seconds ago. The remaining time is not known if the
    rows should have been done by now.
    """
    n = progress.done + progress.failed
    parts = [f"{part}: {n:,}" + ("" if due is None else f" of {due:,}")]
    if n:
        parts.append(f"{rate:.1f}/s" if rate >= _SLOW or not rate else f"{60 * rate:.1g}/min")
    if due is not None and rate > 0 and due > n:
        left_s = (due - n) / rate - waited_s
        parts.append(f"{format_duration(left_s)} left" if left_s > 0 else "time left not known")
    if progress.note:
        parts.append(progress.note)
    if COST in progress.totals:
        parts.append(format_cost(progress.totals[COST]))
    if progress.failed:
        causes = [f"{count:,} {reason}" for reason, count in progress.failures.most_common(_CAUSES)]
        parts.append(f"{progress.failed:,} failed ({', '.join(causes)})")
    return ", ".join(parts)


def format_duration(seconds: float) -> str:
    """Return a duration as text: `8 s`, `4 min 10 s` or `2 h 05 min`."""
    total_s = round(seconds)
    if total_s < _MINUTE_S:
        return f"{total_s} s"
    if total_s < _HOUR_S:
        return f"{total_s // _MINUTE_S} min {total_s % _MINUTE_S:02d} s"
    return f"{total_s // _HOUR_S} h {total_s % _HOUR_S // _MINUTE_S:02d} min"


def format_cost(cost_usd: float) -> str:
    """Return a cost in USD with 2 decimal places; with 4 if it is below 1 USD."""
    return f"{cost_usd:,.2f} USD" if cost_usd >= 1 else f"{cost_usd:.4f} USD"
