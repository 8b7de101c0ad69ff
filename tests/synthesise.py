"""Makes small clips for tests, documents and samples: the same bytes for the same recipe."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from scenes import room, street
from scenes.ball import SampleScene
from scenes.room import RoomScene
from scenes.street import StreetScene
from unreel.core.errors import InvalidValueError
from unreel.core.span import TimeSpan, convert_to_microseconds
from unreel.core.trace import BoxAt, Category, Trace
from unreel.media.decode import Rgb
from unreel.media.encode import SOUND_RATE_HZ, ClipWriter, VideoTrackSettings

Container = Literal["mp4", "mkv", "webm", "gif", "ts"]
SceneName = Literal["ball", "room", "street"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClipRecipe:
    """Settings of a synthetic clip: content and encoding."""

    container: Container = "mp4"
    width: int = 192
    """As shown, after the turn."""
    height: int = 128
    rate: Fraction = Fraction(24)
    n_frames: int = 48
    instants_s: tuple[Fraction, ...] = ()
    """When each frame appears, for a variable rate or a clip that does not start at 0; empty for
    the constant one from 0 on. The container rounds: mp4 and ts to 1/90,000 s, mkv and webm to
    1/1,000 s, gif to 1/100 s."""
    gop: int = 12
    """Frames from one key frame to the next."""
    b_frames: int = 2
    """Frames in a row that are stored out of order; of H.264 only (mp4, mkv, ts)."""
    tone_hz: int | None = None
    rotation_deg: Literal[0, 90, 180, 270] = 0
    """Clockwise turn that a player must apply to see the scene upright; mp4 and mkv only."""
    seed: int = 0
    scene: SceneName = "ball"
    """`ball` carries each frame's index in a strip, for tests; the others are for people to look at."""
    flawed: bool = False
    """With one fault put in, which `planted_trace` tells exactly; `room` and `street` only."""

    def __post_init__(self) -> None:
        way = _WAYS[self.container]
        if self.flawed and self.scene not in _VIEWS:
            msg = f"the scene {self.scene} knows no fault. Use {' or '.join(_VIEWS)}"
            raise InvalidValueError(msg)
        if self.tone_hz is not None and way.sound_codec is None:
            msg = f"{self.container} holds no sound. Leave tone_hz out"
            raise InvalidValueError(msg)
        if self.rotation_deg and not way.turns:
            msg = f"{self.container} keeps no rotation. Use mp4 or mkv"
            raise InvalidValueError(msg)
        if self.instants_s and len(self.instants_s) != self.n_frames:
            msg = f"{len(self.instants_s)} instants for {self.n_frames} frames. Give one for each"
            raise InvalidValueError(msg)
        if self.n_frames < 1 or self.rate <= 0:
            msg = "a clip needs a frame and a rate. Give n_frames and rate above 0"
            raise InvalidValueError(msg)


@dataclass(frozen=True, slots=True)
class _ContainerSettings:
    """Encoder settings of one container."""

    muxer: str
    codec: str
    sound_codec: str | None
    turns: bool
    pixel_format: str = "yuv420p"


_WAYS: Final[dict[Container, _ContainerSettings]] = {
    "mp4": _ContainerSettings("mp4", "libx264", "aac", turns=True),
    "mkv": _ContainerSettings("matroska", "libx264", "aac", turns=True),
    "webm": _ContainerSettings("webm", "libvpx-vp9", "libopus", turns=False),
    "gif": _ContainerSettings("gif", "gif", None, turns=False, pixel_format="rgb8"),
    "ts": _ContainerSettings("mpegts", "libx264", "aac", turns=False),
}
_FINE: Final = Fraction(1, 90_000)


@dataclass(frozen=True, slots=True)
class _SceneView:
    """A scene to look at, and the fault that it may hold."""

    build: type[RoomScene] | type[StreetScene]
    starts_s: Fraction
    category: Category
    explanation: str


_VIEWS: Final[dict[SceneName, _SceneView]] = {
    "room": _SceneView(
        RoomScene,
        Fraction(room.FLAW_S),
        Category.REDUNDANT_OBJECT,
        "A second ball comes out of the first, rises by itself and throws no shadow.",
    ),
    "street": _SceneView(
        StreetScene,
        Fraction(street.FLAW_S),
        Category.OBJECT_SPLITTING,
        "The front wheel leaves the red car and floats up, while the car drives on.",
    ),
}


@lru_cache(maxsize=256)
def synthesise(recipe: ClipRecipe) -> bytes:
    """The file that `recipe` describes, made once; `scene.read_index` reads the index off any frame."""
    return encode_scene(recipe)


def encode_scene(recipe: ClipRecipe) -> bytes:
    """Draw and encode the file of `synthesise`, without its cache."""
    way = _WAYS[recipe.container]
    has_sound = recipe.tone_hz is not None and way.sound_codec is not None
    draw = _painter(recipe)
    with ClipWriter(
        way.muxer,
        _video_track(recipe, way),
        n_channels=int(has_sound),
        sound_codec=way.sound_codec or "",
    ) as writer:
        for index, tick in enumerate(_ticks(recipe)):
            upright = draw(index)
            # np.rot90 turns anticlockwise: the player's turn undoes it.
            writer.add_picture(np.rot90(upright, recipe.rotation_deg // 90).copy(), tick=tick)
            if recipe.tone_hz is not None:
                writer.add_sound(_tone(recipe, index))
        return writer.finish()


def planted_trace(recipe: ClipRecipe) -> Trace:
    """The fault of a flawed recipe: its span to the clip's end, and its box at every frame."""
    if not recipe.flawed:
        msg = "no fault was put into this clip. Ask for it with flawed=True"
        raise InvalidValueError(msg)
    view = _VIEWS[recipe.scene]
    scene = view.build(recipe.width, recipe.height, recipe.seed, flawed=True)
    instants = [at_s for at_s in _instants_s(recipe) if at_s >= view.starts_s]
    if not instants:
        msg = f"the clip ends before its fault begins at {view.starts_s} s. Make it longer"
        raise InvalidValueError(msg)
    return Trace(
        span=TimeSpan(
            convert_to_microseconds(instants[0]),
            convert_to_microseconds(_instants_s(recipe)[-1] + 1 / recipe.rate),
        ),
        track=tuple(
            BoxAt(convert_to_microseconds(at_s), scene.flaw_box(float(at_s))) for at_s in instants
        ),
        categories=frozenset({view.category}),
        explanation=view.explanation,
    )


def _painter(recipe: ClipRecipe) -> Callable[[int], Rgb]:
    """Draws a frame by its index."""
    if recipe.scene not in _VIEWS:
        return SampleScene(recipe.width, recipe.height, recipe.seed).draw
    view = _VIEWS[recipe.scene]
    scene = view.build(recipe.width, recipe.height, recipe.seed, flawed=recipe.flawed)
    instants = _instants_s(recipe)
    return lambda index: scene.draw(float(instants[index]))


def _instants_s(recipe: ClipRecipe) -> list[Fraction]:
    """When each frame appears, after the first."""
    if recipe.instants_s:
        return [at_s - recipe.instants_s[0] for at_s in recipe.instants_s]
    return [index / recipe.rate for index in range(recipe.n_frames)]


def _video_track(recipe: ClipRecipe, way: _ContainerSettings) -> VideoTrackSettings:
    lying = recipe.rotation_deg % 180
    return VideoTrackSettings(
        codec=way.codec,
        width=recipe.height if lying else recipe.width,
        height=recipe.width if lying else recipe.height,
        rate=recipe.rate,
        time_base=_FINE if recipe.instants_s else 1 / recipe.rate,
        pixel_format=way.pixel_format,
        options=_options(recipe, way),
        stored_turn_deg=recipe.rotation_deg,
    )


def _options(recipe: ClipRecipe, way: _ContainerSettings) -> dict[str, str]:
    group = {"g": str(recipe.gop)}
    match way.codec:
        case "libx264":
            x264 = {"bf": str(recipe.b_frames), "crf": "20", "preset": "veryfast"}
            # A scene change would add a key frame, and a run of still frames would drop B-frames.
            return group | x264 | {"sc_threshold": "0", "b_strategy": "0"}
        case "libvpx-vp9":
            return group | {"crf": "24", "b": "0", "deadline": "realtime", "cpu-used": "8"}
        case _:
            return {}


def _ticks(recipe: ClipRecipe) -> list[int]:
    if recipe.instants_s:
        return [round(instant / _FINE) for instant in recipe.instants_s]
    return list(range(recipe.n_frames))


def _tone(recipe: ClipRecipe, index: int) -> NDArray[np.int16]:
    """The samples that belong to frame `index` at the constant rate."""
    first, last = (int(i / recipe.rate * SOUND_RATE_HZ) for i in (index, index + 1))
    phase = 2 * np.pi * (recipe.tone_hz or 0) / SOUND_RATE_HZ * np.arange(first, last)
    samples: NDArray[np.int16] = np.rint(8_000 * np.sin(phase)).astype(np.int16)
    return samples.reshape(-1, 1)
