"""The judge of explanations: 0, 0.5 or 1 from a pinned model, each pair of texts asked once."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final, Protocol

from pydantic import TypeAdapter, ValidationError

from unreel.core.answer import Reply, Usage
from unreel.core.errors import InvalidValueError, UnreadableSourceError, UnsafeTargetError
from unreel.core.estimate import Measured
from unreel.core.failure import Failure
from unreel.core.identity import digest
from unreel.core.verdict import Unparsed
from unreel.core.writing import Folder
from unreel.protocols.text import after_thinking
from unreel.protocols.trace.judge import as_shown, judge_prompt, parse_judge
from unreel.reviewers.endpoint.budget import Spending
from unreel.stats.agreement import cohen_kappa

TRIES: Final = 3
"""Answers that are taken from a judge before a pair stays unscored."""
PROMPT_VERSION: Final = digest(judge_prompt("", ""))[:16]
"""Changes with every word of the judge's prompt and its examples."""
NO_TRUTH, NO_PREDICTION, UNREADABLE = "no-truth", "no-prediction", "unreadable"
_SCORES: Final = (0.0, 0.5, 1.0)
_IN_FLIGHT: Final = 1024
"""Pairs under way at once; the judge's own pace decides how many of them are sent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """A person's explanation of one clip, and a reviewer's."""

    clip: str
    truth: str
    predicted: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ruling:
    """What a judge makes of two texts: a score, or the reason why there is none."""

    score: float | None
    """0, 0.5 or 1; `None` is unscored, which is never 0."""
    why: str = ""
    """Empty beside a score; else a word that can be counted."""
    detail: str = ""
    usage: Usage | None = None
    """Tokens of the replies behind it, as far as the server told them."""

    def __post_init__(self) -> None:
        if (self.score is None) != bool(self.why) or self.score not in (None, *_SCORES):
            msg = f"a ruling is 0, 0.5 or 1, or says why it is none, got {self}. Parse it first"
            raise InvalidValueError(msg)


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """The ruling on one clip's explanation."""

    clip: str
    ruling: Ruling
    cached: bool = False
    """True when it was asked for in an earlier call."""

    @property
    def score(self) -> float | None:
        """The ruling's score: what a row carries as `text_score`."""
        return self.ruling.score

    @property
    def why(self) -> str:
        """Why there is no score; empty where there is one."""
        return self.ruling.why


@dataclass(frozen=True, slots=True, kw_only=True)
class Judging:
    """One judge's rulings, in the order of the explanations, and what they cost."""

    judge: str
    judged: tuple[Judged, ...]
    spent: Spending
    """What this call alone asked and spent."""
    tokens: Usage | None
    """Behind all rulings, those of earlier calls too, each pair of texts once; `None`: none told."""

    @property
    def n_scored(self) -> int:
        """Explanations with a score."""
        return sum(judged.score is not None for judged in self.judged)

    @property
    def unscored(self) -> Mapping[str, int]:
        """Explanations without a score, by reason."""
        return dict(sorted(Counter(judged.why for judged in self.judged if judged.why).items()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """How far two judges agree beyond chance, over the explanations that both scored."""

    kappa: Measured
    n_both: int
    n: int
    """All explanations, scored or not."""


class Judge(Protocol):
    """Answers texts, many at a time within one event loop."""

    @property
    def name(self) -> str:
        """Stable identity: the same name means the same weights and decoding."""
        ...

    @property
    def spending(self) -> Spending:
        """Requests, tokens and money so far."""
        ...

    async def ask_text(self, prompt: str, *, key: str) -> Reply | Failure:
        """The reply to `prompt`, or why there is none; `key` is the idempotency key."""
        ...

    async def close(self) -> None:
        """Let go of connections; harmless when called twice."""
        ...


def judge_all(
    explained: Sequence[Explained],
    build: Callable[[], Judge],
    *,
    cache: Path,
    retry_unscored: bool = False,
) -> Judging:
    """Rulings on all of `explained`, in order; what `cache` holds is not asked again.

    An answer other than 0, 0.5 and 1 is asked for again, `TRIES` times in all, then stays unscored,
    and is asked again in a later call only with `retry_unscored`. A failed request leaves its pair
    unscored with its cause and is not kept, so that a later call asks again. A missing text is not
    asked about.

    `build` makes the judge inside the event loop; it is closed here. Call from outside of any loop.
    """
    return asyncio.run(_judge_all(explained, build, cache, retry_unscored=retry_unscored))


def agreement(first: Judging, second: Judging, *, seed: int) -> Agreement:
    """Cohen's kappa of two judges over the explanations that both scored; clips are drawn whole.

    Raises:
        InvalidValueError: They did not judge the same explanations, or are the same judge.
    """
    if first.judge == second.judge:
        msg = f"both judges are {first.judge!r}. Name another model as the second judge"
        raise InvalidValueError(msg)
    if [one.clip for one in first.judged] != [other.clip for other in second.judged]:
        msg = "the judges did not judge the same explanations. Give both the same list"
        raise InvalidValueError(msg)
    pairs = zip(first.judged, second.judged, strict=True)
    both = [(a, b) for a, b in pairs if a.score is not None and b.score is not None]
    kappa = cohen_kappa(
        [a.score for a, _ in both],
        [b.score for _, b in both],
        seed=seed,
        clusters=[a.clip for a, _ in both],
    )
    return Agreement(kappa=kappa, n_both=len(both), n=len(first.judged))


async def _judge_all(
    explained: Sequence[Explained],
    build: Callable[[], Judge],
    cache: Path,
    *,
    retry_unscored: bool,
) -> Judging:
    judge = build()
    try:
        pairs = {_key(judge.name, pair): pair for pair in explained if not _unasked(pair)}
        kept = {key: ruling for key, ruling in _read_cache(cache) if key in pairs}
        if retry_unscored:
            kept = {key: ruling for key, ruling in kept.items() if ruling.score is not None}
        missing = {key: pair for key, pair in pairs.items() if key not in kept}
        asked = await _ask_all(judge, missing, cache) if missing else {}
    finally:
        await judge.close()
    rulings = kept | asked
    return Judging(
        judge=judge.name,
        judged=tuple(_judged(pair, _key(judge.name, pair), rulings, kept) for pair in explained),
        spent=judge.spending,
        tokens=_add(ruling.usage for ruling in rulings.values()),
    )


async def _ask_all(judge: Judge, pairs: Mapping[str, Explained], cache: Path) -> dict[str, Ruling]:
    waiting = iter(pairs.items())
    rulings: dict[str, Ruling] = {}
    with _open_cache(cache) as file:

        async def work() -> None:
            for key, pair in waiting:
                rulings[key], keep = await _ask(judge, pair, key)
                if keep:
                    _append(file, key, rulings[key])

        async with asyncio.TaskGroup() as workers:
            for _ in range(min(len(pairs), _IN_FLIGHT)):
                workers.create_task(work())
    return rulings


async def _ask(judge: Judge, pair: Explained, key: str) -> tuple[Ruling, bool]:
    """The ruling, and whether it is worth keeping: another day may heal a failed request."""
    prompt = judge_prompt(pair.truth, pair.predicted)
    usages: list[Usage | None] = []
    said = ""
    for attempt in range(TRIES):
        # A key of its own, or the server may repeat the answer that could not be read.
        outcome = await judge.ask_text(prompt, key=digest(key, str(attempt)))
        if isinstance(outcome, Failure):
            why, detail = outcome.reason.value, outcome.detail
            return Ruling(score=None, why=why, detail=detail, usage=_add(usages)), False
        usages.append(outcome.usage)
        score = parse_judge(after_thinking(outcome.text))
        if not isinstance(score, Unparsed):
            return Ruling(score=score, usage=_add(usages)), True
        said = score.found
    detail = f"{TRIES} answers were not 0, 0.5 or 1; the last was {said!r}"
    return Ruling(score=None, why=UNREADABLE, detail=detail, usage=_add(usages)), True


def _judged(
    pair: Explained, key: str, rulings: Mapping[str, Ruling], kept: Mapping[str, Ruling]
) -> Judged:
    why = _unasked(pair)
    ruling = Ruling(score=None, why=why) if why else rulings[key]
    return Judged(clip=pair.clip, ruling=ruling, cached=not why and key in kept)


def _unasked(pair: Explained) -> str:
    """Why no judge is needed; empty when one is."""
    if not as_shown(pair.truth).strip():
        return NO_TRUTH
    return "" if as_shown(pair.predicted).strip() else NO_PREDICTION


def _key(judge: str, pair: Explained) -> str:
    texts = as_shown(pair.truth), as_shown(pair.predicted)
    return digest("judge", judge, PROMPT_VERSION, *texts)


def _add(usages: Iterable[Usage | None]) -> Usage | None:
    told = [usage for usage in usages if usage is not None]
    if not told:
        return None
    return Usage(
        input_tokens=sum(usage.input_tokens for usage in told),
        output_tokens=sum(usage.output_tokens for usage in told),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Line:
    """One line of the cache. It holds neither text but what a judge said instead of a score."""

    key: str
    ruling: Ruling


_LINE: Final = TypeAdapter(_Line)


def _read_cache(path: Path) -> Iterator[tuple[str, Ruling]]:
    """All whole lines, the latest of a key last; a line that a kill cut short was never answered."""
    try:
        with Folder(path.parent).read(path.name) as file:
            for line in file:
                try:
                    read = _LINE.validate_json(line)
                except ValidationError:
                    continue
                yield read.key, read.ruling
    except FileNotFoundError:
        return
    except (OSError, UnsafeTargetError) as error:
        raise _unusable(path, error) from error


def _open_cache(path: Path) -> IO[bytes]:
    try:
        file = Folder(path.parent).append(path.name)
    except (OSError, UnsafeTargetError) as error:
        raise _unusable(path, error) from error
    file.write(b"\n")  # a kill may have cut the last line: the next one must not be glued to it
    return file


def _append(file: IO[bytes], key: str, ruling: Ruling) -> None:
    """One line in one `write`: it outlives kill -9 of this process from here on."""
    file.write(_LINE.dump_json(_Line(key=key, ruling=ruling)) + b"\n")
    file.flush()


def _unusable(path: Path, error: Exception) -> UnreadableSourceError:
    remedy = "Name a file that you may read and write, or one that is not there yet"
    return UnreadableSourceError(str(path), f"no cache of rulings ({error})", remedy)
