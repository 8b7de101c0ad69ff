"""Location and identity of a run's benchmark, valid from any folder and after both moved."""

import os
from pathlib import Path
from typing import Annotated, Final

from pydantic import Field

from unreel.benchmarks.statistics import BenchmarkIdentity
from unreel.core.errors import InvalidSettingError, UnreadableSourceError
from unreel.engine.location import StorageLocation
from unreel.recipes.section import Count, RecipeSection, Text

_SHOWN: Final = 10
"""Of a fingerprint: two that differ differ in these."""


class KeptBenchmark(RecipeSection):
    """Stored reference to a run's benchmark."""

    at: Annotated[Text, Field(min_length=1)]
    """Where it lay, from the root of the machine."""
    from_run: Annotated[Text, Field(min_length=1)] | None = None
    """The same seen from the run's folder, where it has one: it holds after both moved together."""
    fingerprint: Annotated[str, Field(pattern=r"^[0-9]{1,4}-[0-9a-f]{64}$")] | None = None
    """See `unreel.benchmarks.statistics`; `None` where it was not read to its end."""
    n_entries: Count | None = None

    @property
    def identity(self) -> BenchmarkIdentity | None:
        """Return the benchmark's identity at the time of the run."""
        if self.fingerprint is None or self.n_entries is None:
            return None
        return BenchmarkIdentity(fingerprint=self.fingerprint, n_entries=self.n_entries)

    def places(self, run: StorageLocation) -> list[Path]:
        """Return the candidate paths, likeliest first."""
        beside = [run.path / self.from_run] if run.is_local and self.from_run else []
        found = [path for path in (*beside, Path(self.at)) if os.path.exists(path)]  # noqa: PTH110  no error for odd names
        return list({os.path.realpath(path): path for path in reversed(found)}.values())[::-1]

    def find(self, run: StorageLocation) -> Path:
        """Return the present path.

        Raises:
            UnreadableSourceError: It is at neither place.
        """
        if places := self.places(run):
            return places[0]
        problem = f"no such file or folder, and the benchmark of {run.uri} was there"
        remedy = "Name its present location: --benchmark PATH"
        raise UnreadableSourceError(self.at, problem, remedy)


def keep_benchmark(
    path: Path, run: StorageLocation, identity: BenchmarkIdentity | None
) -> KeptBenchmark:
    """Return the reference that the run at `run` stores to its benchmark at `path`."""
    at = os.path.abspath(path)  # noqa: PTH100  links stay as the person named them
    from_run = None
    if run.is_local:
        from_run = os.path.relpath(os.path.realpath(path), os.path.realpath(run.path))
    return KeptBenchmark(
        at=at if _is_utf8_encodable(at) else str(path),
        from_run=from_run if from_run and _is_utf8_encodable(from_run) else None,
        fingerprint=None if identity is None else identity.fingerprint,
        n_entries=None if identity is None else identity.n_entries,
    )


def describe_difference(before: BenchmarkIdentity, now: BenchmarkIdentity) -> str:
    """Return the differences of a benchmark from its earlier version, as text; "" if there are none or it is unknown."""
    schemes = {each.fingerprint.partition("-")[0] for each in (before, now)}
    if before.fingerprint == now.fingerprint or len(schemes) > 1:
        return ""
    rows = f"{before.n_entries:,} usable rows then, {now.n_entries:,} now"
    if before.n_entries == now.n_entries:
        rows = f"{now.n_entries:,} usable rows then and now, but other names or another truth"
    marks = " then, ".join(each.fingerprint.partition("-")[2][:_SHOWN] for each in (before, now))
    return f"{rows} (fingerprint {marks} now)"


def require_unchanged(
    kept: KeptBenchmark, now: BenchmarkIdentity, *, path: Path, run: StorageLocation
) -> None:
    """Refuse to hold the answers of a run against another benchmark than it asked about.

    Raises:
        InvalidSettingError: The benchmark at `path` is not the one that it was.
    """
    if kept.identity is None or not (differs := describe_difference(kept.identity, now)):
        return
    problem = f"{path} is not what {run.uri} asked about: {differs}"
    others = [other for other in kept.places(run) if not other.samefile(path)]
    other = f"Try --benchmark {others[0]}, or name" if others else "Name"
    remedy = f"{other} the one that it was with --benchmark PATH, or use the present one: --accept-changed"
    setting = "benchmark"
    raise InvalidSettingError(setting, problem, remedy)


def _is_utf8_encodable(path: str) -> bool:
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True
