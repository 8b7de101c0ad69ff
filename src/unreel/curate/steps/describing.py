"""Stories: real clips told by a vision model, grouped by meaning, and as many kept of each group."""

import json
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from unreel.core.failure import Failure
from unreel.core.judgement import Label
from unreel.curate.piece import FACTS, LeftOut, Piece, Sifted, failed_piece
from unreel.curate.step import Found, StepName, Subject, Workbench, to_json
from unreel.curate.stories.cluster import cluster, embed, sample_evenly
from unreel.curate.stories.describe import CONDITION, Described, describe
from unreel.curate.stories.difficulty import measure_diversity
from unreel.engine.access import Access, local_copy
from unreel.engine.stage import Resources, Row, Stage, failed
from unreel.media.access import media_reader
from unreel.reviewers.endpoint.keys import Contact, contact
from unreel.reviewers.endpoint.retrying import Patience
from unreel.reviewers.endpoint.reviewer import EndpointReviewer, Limits, Manner, endpoint_name
from unreel.reviewers.sentences import MiniLmEncoder

DESCRIBE: Final = "describe"
CLUSTER: Final = "cluster"
_SMALL_PIXELS: Final = 96


@dataclass(frozen=True, slots=True, kw_only=True)
class Telling:
    """Who tells stories, and how hard it may be asked."""

    model: str
    max_tokens: int
    max_connections: int
    deadline_s: float

    @property
    def manner(self) -> Manner:
        """How the model writes."""
        return Manner(max_tokens=self.max_tokens)


def describe_pieces(bench: Workbench, pieces: Sequence[Piece], telling: Telling) -> Sifted:
    """Real pieces with their story and difficulty; a story stands in where a clip has no prompt."""
    settings = {
        "teller": endpoint_name(telling.model, telling.manner),
        "condition": str(CONDITION),
    }
    step = StepName(name=DESCRIBE, version=1, settings=settings)
    real = [piece for piece in pieces if piece.entry.label is Label.REAL]
    subjects = [piece.subject(facts=FACTS.dump_python(piece.facts, mode="json")) for piece in real]
    told = bench.ask_stage(step, subjects, DescribeStage(telling, bench.access))
    stories = dict(zip((piece.id for piece in real), told, strict=True))
    kept: list[Piece] = []
    out: list[LeftOut] = []
    for piece in pieces:
        story = stories.get(piece.id)
        if isinstance(story, Failure):
            out.append(failed_piece(piece, DESCRIBE, story))
        else:
            kept.append(piece if story is None else _told(piece, story))
    return Sifted(pieces=tuple(kept), left_out=tuple(out))


def sample_pieces(bench: Workbench, pieces: Sequence[Piece], *, seed: int) -> Sifted:
    """The same number of described pieces from every group of stories; the others go."""
    described = [piece for piece in pieces if DESCRIBE in piece.notes]
    step = StepName(name=CLUSTER, version=1, settings={"seed": seed})
    subjects = [piece.subject(story=piece.notes[DESCRIBE]["story"]) for piece in described]
    found = bench.settle(step, subjects, lambda asked: _groups(asked, seed=seed))
    group = dict(zip((piece.id for piece in described), found, strict=True))
    kept: list[Piece] = []
    out: list[LeftOut] = []
    for piece in pieces:
        own = group.get(piece.id)
        if own is None:
            kept.append(piece)
        elif own["kept"]:
            kept.append(replace(piece, notes={**piece.notes, CLUSTER: own["group"]}))
        else:
            detail = f"group {own['group']} has more clips than the smallest one"
            out.append(LeftOut(piece.entry.name, CLUSTER, "not-drawn", detail))
    return Sifted(pieces=tuple(kept), left_out=tuple(out))


class DescribeStage(Stage):
    """Tells the story of each clip from eight frames, and measures how diverse it is."""

    def __init__(self, telling: Telling, access: Access) -> None:
        self.resources = Resources(in_flight=telling.max_connections)
        self._telling, self._access = telling, access
        self._asked = contact(telling.model, key_hosts=access.settings.key_hosts)
        self._open = ExitStack()

    def setup(self) -> None:
        self._open = ExitStack()
        access = self._access
        self._reader = self._open.enter_context(
            media_reader(access.settings, trusted=access.trusted)
        )
        self._teller = _build(self._telling, self._asked)

    async def __call__(self, row: Row) -> Row:
        with local_copy(row["location"], self._access) as file:
            facts = FACTS.validate_json(to_json(_given(row)["facts"]))
            clip = Described(clip=row["clip"], path=file, facts=facts)
            story = await describe(clip, self._teller, reader=self._reader)
            if isinstance(story, Failure):
                return failed(row, story)
            frames = self._reader.frames(
                file,
                sampling=CONDITION.sampling,
                encoding="rgb24",
                longest_side=_SMALL_PIXELS,
            )
        if isinstance(frames, Failure):
            return failed(row, frames)
        diversity = measure_diversity(
            story.text,
            [frame.rgb() for frame in frames.frames],
            length_s=facts.video.duration_s,
        )
        measures = asdict(diversity) | {"length_s": str(diversity.length_s)}
        found = {
            "story": story.text,
            "teller": story.teller,
            "diversity": measures,
            "difficulty": diversity.difficulty.value,
        }
        return row | {"found": to_json(found)}

    async def close(self) -> None:
        await self._teller.close()
        self._open.close()

    def __getstate__(self) -> dict[str, Any]:
        return {
            "resources": self.resources,
            "_telling": self._telling,
            "_access": self._access,
            "_asked": self._asked,
        }


def _build(telling: Telling, asked: Contact) -> EndpointReviewer:
    half_s = telling.deadline_s / 2
    return EndpointReviewer(
        telling.model,
        api_key=asked.read_key(),
        manner=telling.manner,
        limits=Limits(
            max_connections=telling.max_connections,
            patience=Patience(
                deadline_s=telling.deadline_s, attempt_s=half_s, outage_s=min(60.0, half_s)
            ),
        ),
    )


def _given(row: Row) -> Found:
    given: Found = json.loads(row["_given"])
    return given


def _told(piece: Piece, story: Found) -> Piece:
    entry = replace(
        piece.entry,
        prompt=piece.entry.prompt or story["story"],
        difficulty=piece.entry.difficulty or story["difficulty"],
    )
    return replace(piece, entry=entry, notes={**piece.notes, DESCRIBE: story})


def _groups(asked: Sequence[Subject], *, seed: int) -> list[dict[str, Any]]:
    vectors = embed({one.clip: one.given["story"] for one in asked}, MiniLmEncoder())
    if not vectors:
        return [{"group": None, "kept": True} for _ in asked]
    groups = cluster(vectors, seed=seed).groups
    drawn = frozenset(sample_evenly(groups, seed=seed))
    return [{"group": groups.get(one.clip), "kept": one.clip in drawn} for one in asked]
