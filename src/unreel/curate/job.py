"""A curation: a recipe, a working folder, and its steps in their order."""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from operator import attrgetter
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

from unreel.core.errors import InvalidSettingError
from unreel.core.names import plain_name
from unreel.curate.audit.take import take as take_audit
from unreel.curate.cluster.take import take as take_cluster
from unreel.curate.crop.take import take as take_crop
from unreel.curate.describe.take import take as take_describe
from unreel.curate.duplicates.take import take as take_duplicates
from unreel.curate.freeze.first_frames import take as take_first_frames
from unreel.curate.freeze.section import FreezeSection
from unreel.curate.freeze.take import take as take_freeze
from unreel.curate.inject.take import take as take_inject
from unreel.curate.lengths.take import take as take_lengths
from unreel.curate.normalise.take import Rendering
from unreel.curate.normalise.take import take as take_render
from unreel.curate.piece import QUARANTINE
from unreel.curate.pieces import Shelf
from unreel.curate.recipe import CurateRecipe
from unreel.curate.scan.take import Cutter, ScanSettings
from unreel.curate.scan.take import take as take_scan
from unreel.curate.screen.take import take as take_screen
from unreel.curate.source.sources import store_of
from unreel.curate.source.take import take as take_source
from unreel.curate.split.take import take as take_split
from unreel.curate.state import State, Work
from unreel.curate.step import Workbench
from unreel.curate.watermark.take import take as take_watermark
from unreel.engine.access import Access
from unreel.engine.place import require_conditional_puts
from unreel.engine.run import kept_up
from unreel.engine.trouble import stores_told
from unreel.engine.whereabouts import find_place, local_folder

Settings = TypeVar("Settings")


@dataclass(frozen=True, slots=True, kw_only=True)
class Curation(Work):
    """The work of a whole recipe."""

    recipe: CurateRecipe


def open_bench(
    recipe: CurateRecipe, out: str | Path | None, access: Access, *, engine: str
) -> Workbench:
    """The bench at `out`, a folder or a prefix; below `curations/`, by its name, where none is named."""
    folder = str(out or Path("curations") / plain_name(recipe.name))
    place = find_place(folder if "://" in folder else str(Path(folder).absolute()), access.storage)
    ledgers = local_folder(place, access.settings) / "ledgers"
    return Workbench(place=place, access=access, ledgers=ledgers, engine=engine)


@dataclass(frozen=True, slots=True)
class Step(Generic[Settings]):
    """One step: what it is taken with, `None` where a recipe does not take it, and how."""

    name: str
    settings: Callable[[CurateRecipe], Settings | None]
    take: Callable[[Settings, Work, State], State]


def _scanning(recipe: CurateRecipe) -> ScanSettings | None:
    deciding = (recipe.duplicates, recipe.split, recipe.crop, recipe.screen)
    if all(section is None for section in deciding):
        return None
    split, cutter = recipe.split, None
    if split is not None:
        cutter = Cutter(detector=split.detector, threshold=split.threshold)
    return ScanSettings(cutter=cutter, prints=recipe.duplicates is not None)


def _cuts(recipe: CurateRecipe) -> bool:
    sections = (recipe.split, recipe.crop, recipe.lengths)
    return any(section is not None for section in sections)


def _cutting(recipe: CurateRecipe) -> Rendering | None:
    """Marks are looked for on pieces that are files of their own."""
    due = recipe.watermark is not None and _cuts(recipe)
    return Rendering(form=None, step="cut") if due else None


def _rendering(recipe: CurateRecipe) -> Rendering | None:
    if recipe.normalise is not None:
        return Rendering(form=recipe.normalise.form)
    due = _cuts(recipe) and _cutting(recipe) is None
    return Rendering(form=None) if due else None


def _first_frames(recipe: CurateRecipe) -> FreezeSection | None:
    return recipe.freeze if recipe.freeze is not None and recipe.freeze.first_frames else None


STEPS: Final[tuple[Step[Any], ...]] = (
    Step("ingest", attrgetter("source"), take_source),
    Step("scan", _scanning, take_scan),
    Step("duplicates", attrgetter("duplicates"), take_duplicates),
    Step("split", attrgetter("split"), take_split),
    Step("crop", attrgetter("crop"), take_crop),
    Step("screen", attrgetter("screen"), take_screen),
    Step("lengths", attrgetter("lengths"), take_lengths),
    Step("cut", _cutting, take_render),
    Step("watermark", attrgetter("watermark"), take_watermark),
    Step("inject", attrgetter("inject"), take_inject),
    Step("render", _rendering, take_render),
    Step("first_frames", _first_frames, take_first_frames),
    Step("describe", attrgetter("describe"), take_describe),
    Step("cluster", attrgetter("cluster"), take_cluster),
    Step("audit", attrgetter("audit"), take_audit),
    Step("freeze", attrgetter("freeze"), take_freeze),
)
"""All steps, in the order in which they are taken."""


def plan_steps(recipe: CurateRecipe) -> list[str]:
    """The steps that `recipe` takes, in order."""
    return [step.name for step in STEPS if step.settings(recipe) is not None]


@stores_told()
def curate(curation: Curation, *, until: str | None = None) -> State:
    """Take the recipe's steps in order, up to `until`; what tables hold already is not done again."""
    bench, planned = curation.bench, plan_steps(curation.recipe)
    if until is not None and until not in planned:
        setting, problem = "step", f"the recipe does not take {until!r}"
        raise InvalidSettingError(setting, problem, f"It takes: {', '.join(planned)}")
    require_conditional_puts(bench.place)
    bench.media.require_plain(whole=True)
    shelf = Shelf.of(bench)
    with shelf.lock():
        shelf.clear()
        return _take_steps(curation, until=until)


def _take_steps(curation: Curation, *, until: str | None) -> State:
    bench, state = curation.bench, State()
    try:
        with kept_up(bench.engine) as runner:
            ready = replace(bench, access=_reaching_its_own(curation), engine=runner)
            work = replace(curation, bench=ready)
            for step in STEPS:
                settings = step.settings(curation.recipe)
                if settings is None:
                    continue
                state = step.take(settings, work, state)
                state = replace(state, steps=(*state.steps, step.name))
                Shelf.of(bench).clear(keep=state.pieces, left_out=state.left_out)
                bench.on_taken(step.name, len(state.pieces))
                if step.name == until:
                    break
    finally:
        _keep_quarantine(bench, state)
    return state


def _reaching_its_own(curation: Curation) -> Access:
    """Stores that the recipe reads from and the working place count as named by the user."""
    access, place = curation.bench.access, curation.bench.place
    stores = [store_of(section) for section in curation.recipe.source]
    stores += [] if place.is_local else [place.uri]
    return replace(access, named=(*access.named, *(store for store in stores if store)))


def _keep_quarantine(bench: Workbench, state: State) -> None:
    shelf = Shelf.of(bench)
    with shelf.folder.create_text(QUARANTINE) as file:
        for left in state.left_out.read(shelf.folder):
            file.write(json.dumps(asdict(left), ensure_ascii=False) + "\n")
    bench.place.put(QUARANTINE, shelf.folder.root / QUARANTINE)
    shelf.folder.remove(QUARANTINE)
