"""What the player is told: typed, and neither more nor less than it reads."""

import json
import re
from dataclasses import asdict, fields, replace
from fractions import Fraction
from importlib.resources import files
from typing import Any

import pytest

from pages.specs import read_spec
from unreel.core.box import Box
from unreel.core.span import TimeSpan
from unreel.core.trace import BoxAt
from unreel.pages.playable_clip import PlayerVideo
from unreel.pages.player import (
    PlayerBoxSpec,
    PlayerSpec,
    PlayerTraceSpec,
    PlayerTrackSpec,
    build_player_spec,
    iter_overlay_traces,
    iter_track_colours,
)

CLIP = PlayerVideo(
    src="clip.mp4",
    width=192,
    height=128,
    n_frames=4,
    rate=Fraction(30000, 1001),
    first_us=0,
    is_copy=False,
)
BOX = PlayerBoxSpec.of(BoxAt(250_000, Box(0.1, 0.2, 0.3, 0.4)))
BENT = PlayerTraceSpec(start_us=250_000, end_us=None, boxes=(BOX,), label="bends", text="It bends.")
KNOWN = PlayerTrackSpec(name="ground truth", kind="truth", traces=(replace(BENT, end_us=500_000),))
NAMED = PlayerTrackSpec(
    name="a reviewer", kind="answer", traces=(BENT, replace(BENT, start_us=None))
)


def spec_of(*tracks: PlayerTrackSpec) -> PlayerSpec:
    return build_player_spec(
        CLIP, title="A clip", duration_us=133_467, shown_us=[66_733, 0, 0], tracks=tracks
    )


def found_in(spec: PlayerSpec) -> Any:
    return json.loads(json.dumps(asdict(spec)))


def test_a_spec_goes_to_the_page_and_back_unchanged() -> None:
    spec = spec_of(KNOWN, NAMED)
    assert read_spec(found_in(spec)) == spec
    assert spec.instants == (0, 33_367, 66_733, 100_100)
    assert spec.shown_us == (0, 66_733)


@pytest.mark.parametrize(
    ("place", "change"),
    [
        ((), {"shown_us": None}),
        ((), {"lanes": []}),
        (("tracks", 0), {"kind": "guess"}),
        (("tracks", 0, "traces", 0), {"start_us": 0.25}),
        (("tracks", 0, "traces", 0, "boxes", 0), {"x2": 0.5}),
        (("tracks", 0, "traces", 0, "boxes", 0), {"at_us": "250000"}),
    ],
)
def test_what_the_spec_does_not_say_is_found(place, change) -> None:
    found = found_in(spec_of(NAMED))
    part = found
    for step in place:
        part = part[step]
    part |= change
    with pytest.raises((ValueError, AssertionError)):
        read_spec(found)


@pytest.mark.parametrize(
    ("name", "part"), [("spec", PlayerSpec), ("track", PlayerTrackSpec), ("trace", PlayerTraceSpec)]
)
def test_the_player_reads_every_field_and_no_other(name: str, part: Any) -> None:
    script = files("unreel.pages").joinpath("static", "player.js").read_text(encoding="utf-8")
    read = set(re.findall(rf"\b{name}\.(\w+)", script))
    assert read == {field.name for field in fields(part)}


def test_the_overlay_draws_the_same_in_the_players_colours() -> None:
    other = replace(NAMED, name="another")
    assert list(iter_track_colours([KNOWN, NAMED, other])) == [1, 0, 2]
    (known,) = iter_overlay_traces(KNOWN, duration_us=1_000_000)
    assert (known.span, known.ends) == (TimeSpan(250_000, 500_000), True)
    first, second = iter_overlay_traces(NAMED, duration_us=1_000_000)
    assert (first.span, first.ends) == (TimeSpan(250_000, 1_000_000), False)
    assert second.span == TimeSpan(0, 1_000_000)
    assert first.track == (BoxAt(250_000, Box(0.1, 0.2, 0.3, 0.4)),)
