"""The hold-out of one season on disk: which scenes its secret hides, which clips are canaries, and the promise in its log."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from unreel.arena.grid import real
from unreel.arena.holdout import canary_scenes, hidden_scenes, open_secret, promise
from unreel.arena.log import EntryState, LogEvent, SeasonLog, append_all
from unreel.arena.play import SAID_GENERATED, SeasonClips
from unreel.arena.season import SeasonRecipe

PROMISE: Final = "the secret of the hold-out has the hash"


def find_hidden(folder: Path, recipe: SeasonRecipe, scenes: Iterable[str]) -> frozenset[str]:
    """The scenes that the season at `folder` hides; none where its recipe asks for none."""
    share = recipe.holdout.share
    if not share:
        return frozenset()
    return hidden_scenes(scenes, share=share, secret=open_secret(folder), season=recipe.name)


def find_canaries(folder: Path, recipe: SeasonRecipe, lineup: SeasonClips) -> Mapping[str, int]:
    """Real clips of known scenes that are published as generated, by name, with that wrong label."""
    count = recipe.holdout.canaries
    if not count:
        return {}
    known = sorted(set(lineup.scenes) - find_hidden(folder, recipe, lineup.scenes))
    secret = open_secret(folder)
    chosen = canary_scenes(known, count=count, secret=secret, season=recipe.name)
    filmed = zip(lineup.clips, lineup.scene, real(lineup), strict=True)
    return {
        clip: SAID_GENERATED
        for clip, scene, own in filmed
        if own and lineup.scenes[scene] in chosen
    }


def give_promise(folder: Path, recipe: SeasonRecipe, *, at_us: int) -> None:
    """Put the hash of the season's secret into its log, once, before anything is played."""
    if not recipe.holdout.share and not recipe.holdout.canaries:
        return
    told = f"{PROMISE} {promise(open_secret(folder))}"

    def promised(history: SeasonLog) -> list[LogEvent]:
        if any(told in event.reasons for event in history.events):
            return []
        event = LogEvent(
            entry=recipe.name, state=EntryState.NOTED, at_us=at_us, kind="season", reasons=(told,)
        )
        return [event]

    append_all(folder, promised)
