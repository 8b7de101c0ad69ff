"""A curation: a recipe, a working folder, and its steps in their order."""

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Final

from unreel.core.errors import InvalidSettingError
from unreel.core.failure import FailureReason
from unreel.curate.freeze import Frozen, Verdict, freeze
from unreel.curate.ingest.clips import ingest
from unreel.curate.ingest.sources import Surroundings, list_sources, store_of
from unreel.curate.piece import CONTRADICTION, REJECTED, LeftOut, Piece, Sifted
from unreel.curate.recipe import (
    AuditSection,
    CurateRecipe,
    DuplicatesSection,
    InjectSection,
    ScreenSection,
    SplitSection,
    WatermarkSection,
)
from unreel.curate.render import render_pieces
from unreel.curate.step import Workbench
from unreel.curate.steps.auditing import audit_pieces
from unreel.curate.steps.cutting import crop_pieces, match_piece_lengths, split_pieces
from unreel.curate.steps.describing import Telling, describe_pieces, sample_pieces
from unreel.curate.steps.doubles import sort_duplicates
from unreel.curate.steps.first_frames import keep_first_frames
from unreel.curate.steps.injecting import Injection, inject_pieces
from unreel.curate.steps.marking import mark_pieces
from unreel.curate.steps.scan import Cutter, scan_pieces
from unreel.curate.steps.screening import screen_pieces
from unreel.engine.access import Access
from unreel.engine.place import require_conditional_puts
from unreel.engine.run import kept_up
from unreel.engine.trouble import stores_told

QUARANTINE: Final = "quarantine.jsonl"
NOT_AUDITED: Final = Verdict(
    text="Not audited: the recipe has no `[audit]`.", document={"audited": False}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Curation:
    """What is to be made, from where, and the bench to make it on."""

    recipe: CurateRecipe
    root: Path
    """Relative paths of the recipe start here."""
    bench: Workbench
    accept_leak: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """How far a curation is: the clips that are still in, and those that are out."""

    pieces: tuple[Piece, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    audit: Verdict | None = None
    frozen: Frozen | None = None
    steps: tuple[str, ...] = ()
    """The steps that were taken."""

    @property
    def reasons(self) -> Mapping[str, int]:
        """How much was left out, by step and reason."""
        return dict(sorted(Counter(f"{one.step}: {one.reason}" for one in self.left_out).items()))

    @property
    def leaks(self) -> bool:
        """Whether the audit found a leak: such a set is frozen only where that is accepted."""
        return self.audit is not None and self.audit.leaks

    @property
    def n_failed(self) -> int:
        """Files and clips that are out because something went wrong, not because a step chose so."""
        reasons = {*FailureReason, REJECTED, CONTRADICTION}
        return sum(one.reason in reasons for one in self.left_out)


Take = Callable[[Curation, State], State]


@stores_told()
def curate(curation: Curation, *, until: str | None = None) -> State:
    """Take the recipe's steps in order, up to `until`; what tables hold already is not done again."""
    planned = plan_steps(curation.recipe)
    if until is not None and until not in planned:
        setting, problem = "step", f"the recipe does not take {until!r}"
        raise InvalidSettingError(setting, problem, f"It takes: {', '.join(planned)}")
    require_conditional_puts(curation.bench.place)
    state = State()
    curation.bench.media.require_plain(whole=True)
    try:
        bench = replace(curation.bench, access=_reaching_its_own(curation))
        with kept_up(bench.engine) as runner:
            ready = replace(curation, bench=replace(bench, engine=runner))
            for name in planned:
                state = replace(STEPS[name](ready, state), steps=(*state.steps, name))
                if name == until:
                    break
    finally:
        _keep_quarantine(curation.bench, state.left_out)
    return state


def _reaching_its_own(curation: Curation) -> Access:
    """Stores that the recipe reads from and the working place count as named by the user."""
    access, place = curation.bench.access, curation.bench.place
    stores = [store_of(section) for section in curation.recipe.source]
    stores += [] if place.is_local else [place.uri]
    return replace(access, named=(*access.named, *(store for store in stores if store)))


def plan_steps(recipe: CurateRecipe) -> list[str]:
    """The steps that `recipe` takes, in order."""
    asked = {name for name in STEPS if getattr(recipe, name, None) is not None}
    implied = {"ingest"}
    if asked & {"duplicates", "split", "crop", "screen"}:
        implied.add("scan")
    if asked & _CUTTING and "watermark" in asked:
        implied.add("cut")  # marks are looked for on pieces that are files of their own
    if recipe.freeze is not None and recipe.freeze.first_frames:
        implied.add("first_frames")
    if recipe.normalise is not None or (asked & _CUTTING and "cut" not in implied):
        implied.add("render")
    return [name for name in STEPS if name in asked | implied]


_CUTTING: Final = frozenset({"split", "crop", "lengths"})


def _ingest(curation: Curation, _state: State) -> Sifted:
    bench = curation.bench
    around = Surroundings(root=curation.root, access=bench.access, place=bench.place)
    return ingest(list_sources(curation.recipe.source, around), bench)


def _scan(curation: Curation, state: State) -> Sifted:
    split = curation.recipe.split
    cutter = None
    if split is not None:
        cutter = Cutter(detector=split.detector, threshold=split.threshold)
    prints = curation.recipe.duplicates is not None
    return scan_pieces(curation.bench, state.pieces, cutter=cutter, prints=prints)


def _duplicates(curation: Curation, state: State) -> Sifted:
    section = curation.recipe.duplicates or DuplicatesSection()
    return sort_duplicates(curation.bench, state.pieces, drop=section.near == "drop")


def _split(curation: Curation, state: State) -> Sifted:
    section = curation.recipe.split or SplitSection()
    return split_pieces(state.pieces, shortest_s=section.shortest_s)


def _crop(_curation: Curation, state: State) -> Sifted:
    return crop_pieces(state.pieces)


def _lengths(curation: Curation, state: State) -> Sifted:
    return match_piece_lengths(curation.bench, state.pieces, seed=curation.recipe.seed)


def _screen(curation: Curation, state: State) -> Sifted:
    section = curation.recipe.screen or ScreenSection()
    decisions = None if section.decisions is None else curation.root / section.decisions
    return screen_pieces(curation.bench, state.pieces, screens=section.screens, decisions=decisions)


def _cut(curation: Curation, state: State) -> Sifted:
    return render_pieces(curation.bench, state.pieces, form=None)


def _watermark(curation: Curation, state: State) -> Sifted:
    section = curation.recipe.watermark or WatermarkSection()
    return mark_pieces(curation.bench, state.pieces, texts=section.texts, clean=section.clean)


def _inject(curation: Curation, state: State) -> Sifted:
    section = curation.recipe.inject or InjectSection()
    wanted = Injection(
        share=section.share,
        categories=section.categories,
        strength=section.strength,
        seed=curation.recipe.seed,
    )
    return inject_pieces(curation.bench, state.pieces, wanted)


def _render(curation: Curation, state: State) -> Sifted:
    section = curation.recipe.normalise
    form = None if section is None else section.form
    return render_pieces(curation.bench, state.pieces, form=form)


def _sifting(step: Callable[[Curation, State], Sifted]) -> Take:
    def take(curation: Curation, state: State) -> State:
        sifted = step(curation, state)
        left_out = (*state.left_out, *sifted.left_out)
        return replace(state, pieces=sifted.pieces, left_out=left_out)

    return take


def _first_frames(curation: Curation, state: State) -> Sifted:
    return keep_first_frames(curation.bench, state.pieces)


def _describe(curation: Curation, state: State) -> Sifted:
    section = curation.recipe.describe
    if section is None:
        return Sifted(pieces=state.pieces)
    telling = Telling(
        model=section.model,
        max_tokens=section.max_tokens,
        max_connections=section.max_connections,
        deadline_s=section.deadline_s,
    )
    return describe_pieces(curation.bench, state.pieces, telling)


def _cluster(curation: Curation, state: State) -> Sifted:
    return sample_pieces(curation.bench, state.pieces, seed=curation.recipe.seed)


def _audit(curation: Curation, state: State) -> State:
    section = curation.recipe.audit or AuditSection()
    verdict = audit_pieces(
        curation.bench, state.pieces, texts=section.texts, seed=curation.recipe.seed
    )
    return replace(state, audit=verdict)


def _freeze(curation: Curation, state: State) -> State:
    if not state.pieces:
        setting, problem = "freeze", "no clip is left to freeze"
        remedy = f"Look at {QUARANTINE} for the reasons"
        raise InvalidSettingError(setting, problem, remedy)
    if state.leaks and not curation.accept_leak:
        return state
    frozen = freeze(
        curation.bench,
        state.pieces,
        recipe=curation.recipe,
        left_out=state.left_out,
        audit=state.audit or NOT_AUDITED,
    )
    return replace(state, frozen=frozen)


STEPS: Final[Mapping[str, Take]] = {
    "ingest": _sifting(_ingest),
    "scan": _sifting(_scan),
    "duplicates": _sifting(_duplicates),
    "split": _sifting(_split),
    "crop": _sifting(_crop),
    "screen": _sifting(_screen),
    "lengths": _sifting(_lengths),
    "cut": _sifting(_cut),
    "watermark": _sifting(_watermark),
    "inject": _sifting(_inject),
    "render": _sifting(_render),
    "first_frames": _sifting(_first_frames),
    "describe": _sifting(_describe),
    "cluster": _sifting(_cluster),
    "audit": _audit,
    "freeze": _freeze,
}


def _keep_quarantine(bench: Workbench, left_out: Sequence[LeftOut]) -> None:
    lines = [json.dumps(asdict(one), ensure_ascii=False) + "\n" for one in sorted(left_out)]
    bench.place.put(QUARANTINE, "".join(lines).encode())
