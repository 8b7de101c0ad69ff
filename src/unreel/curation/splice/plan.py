"""Plan of spliced videos: the segments of each video in order, and the group of the video."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from unreel.core.clip import ClipId, Generated
from unreel.core.content_ids import digest
from unreel.core.judgement import Label
from unreel.curation.inject.step import CREATOR, StoredTrace
from unreel.curation.normalise import FrameCoordinateMapping, build_frame_mapping
from unreel.curation.recipe import SpliceSection
from unreel.curation.segment import ClipSegment, ExactSeconds
from unreel.media.normalise import NormalisedClipFormat
from unreel.media.render import PixelCrop

_WHOLE = 1 << 32


@dataclass(frozen=True, slots=True, kw_only=True)
class SplicedPart:
    """Part of a spliced video: `n_frames` output frames of a clip from `start_s` on."""

    clip: ClipId
    start_s: ExactSeconds
    n_frames: int
    crop: PixelCrop | None
    mapping: FrameCoordinateMapping
    """Mapping from the clip's frames to those of the spliced video."""
    generated: bool
    """Whether every frame is generated."""
    traces: tuple[StoredTrace, ...] = ()
    """Injected traces, in the time of the clip."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SplicedVideoPlan:
    """Segments of one spliced video in order, each with its number of frames."""

    segments: tuple[tuple[ClipSegment, int], ...]

    @property
    def creators(self) -> list[str]:
        """Return the creators of the generated segments."""
        origins = (piece.entry.origin for piece, _ in self.segments)
        return sorted({origin.creator for origin in origins if isinstance(origin, Generated)})

    def parts(self, fmt: NormalisedClipFormat) -> tuple[SplicedPart, ...]:
        """Return the parts of the video in the format of `fmt`."""
        return tuple(_build_part(piece, n, fmt) for piece, n in self.segments)


def _build_part(piece: ClipSegment, n_frames: int, fmt: NormalisedClipFormat) -> SplicedPart:
    injected = _is_injected(piece)
    return SplicedPart(
        clip=piece.clip.id,
        start_s=piece.start_s,
        n_frames=n_frames,
        crop=piece.cut.crop,
        mapping=build_frame_mapping(piece, fmt),
        generated=piece.entry.label is Label.GENERATED and not injected,
        traces=piece.entry.traces if injected else (),
    )


def _is_injected(piece: ClipSegment) -> bool:
    origin = piece.entry.origin
    return isinstance(origin, Generated) and origin.creator == CREATOR


class SplicePlanner:
    """Planner that uses each segment at most once.

    Shots of one source stay in order, and sources follow each other in a random order. A generated
    segment goes to a random place. A segment with an injected trace replaces its twin. Each segment
    is cut to the length of a random one of the other label, so that lengths reveal nothing.
    """

    def __init__(
        self, pieces: Sequence[ClipSegment], section: SpliceSection, rate: Fraction, *, seed: int
    ) -> None:
        self._section, self._rate, self._seed = section, rate, seed
        real = [piece for piece in pieces if piece.entry.label is Label.REAL]
        self._real = sorted(real, key=self._get_real_order)[::-1]
        generated = [
            piece
            for piece in pieces
            if piece.entry.label is Label.GENERATED
            and not _is_injected(piece)
            and piece.length_s * rate >= 1
        ]
        self._made = sorted(generated, key=lambda piece: self._draw_number("made", piece.id))
        self._twins = {p.entry.name.rpartition("+")[0]: p for p in pieces if _is_injected(p)}
        self._n_frames = int(section.length_s * rate)
        self._lengths = {
            Label.REAL: [self._count_frames(piece) for piece in self._made],
            Label.GENERATED: [self._count_frames(piece) for piece in self._real],
        }
        """Lengths in frames to which segments of each label are cut."""

    def _get_real_order(self, piece: ClipSegment) -> tuple[int, str, Fraction]:
        return self._draw_number("real", get_scene_or_source(piece)), piece.source, piece.start_s

    def _draw_number(self, *parts: object) -> int:
        return int(digest("splice", str(self._seed), *map(str, parts))[:8], 16)

    def _count_frames(self, piece: ClipSegment) -> int:
        return min(int(piece.length_s * self._rate), self._n_frames // 4)

    def _count_used_frames(self, piece: ClipSegment) -> int:
        """Return the number of frames of the segment in a video."""
        n, lengths = self._count_frames(piece), self._lengths[piece.entry.label]
        return min(n, lengths[self._draw_number("cut", piece.id) % len(lengths)]) if lengths else n

    def plan(self) -> Iterator[SplicedVideoPlan]:
        """Yield plans until the real segments do not fill another video."""
        number = 0
        while (plan := self._plan_video(number)) is not None:
            yield plan
            number += 1

    def _plan_video(self, number: int) -> SplicedVideoPlan | None:
        n_generated = 0
        if self._draw_number("spliced", number) < self._section.share * _WHOLE:
            n_generated = 1 + self._draw_number("count", number) % self._section.segments
        n_twins = sum(self._draw_number("twin", number, slot) % 2 for slot in range(n_generated))
        n_twins = n_generated if not self._made else n_twins if self._twins else 0
        donors: list[ClipSegment] = []
        while (
            len(donors) < n_generated - n_twins
            and self._made
            and sum(map(self._count_used_frames, [*donors, self._made[-1]])) <= self._n_frames // 2
        ):
            donors.append(self._made.pop())
        segments = self._take_real(self._n_frames - sum(map(self._count_used_frames, donors)))
        if not segments:
            return None
        self._exchange_twins(segments, n_twins, number)
        for donor in donors:
            index = self._draw_number("place", donor.id) % (len(segments) + 1)
            segments.insert(index, (donor, self._count_used_frames(donor)))
        return SplicedVideoPlan(segments=tuple(segments))

    def _take_real(self, n_frames: int) -> list[tuple[ClipSegment, int]]:
        """Take real segments of `n_frames` frames together; none if there are not enough."""
        segments: list[tuple[ClipSegment, int]] = []
        while n_frames and self._real:
            piece = self._real.pop()
            segments.append((piece, min(n_frames, self._count_used_frames(piece))))
            n_frames -= segments[-1][1]
        return [] if n_frames else [segment for segment in segments if segment[1]]

    def _exchange_twins(
        self, segments: list[tuple[ClipSegment, int]], n_twins: int, number: int
    ) -> None:
        """Replace up to `n_twins` complete real segments by their twins with an injected trace."""
        indices = [i for i, (p, _) in enumerate(segments[:-1]) if p.entry.name in self._twins]
        indices.sort(key=lambda index: self._draw_number("exchange", number, index))
        for index in indices[:n_twins]:
            piece, n_frames = segments[index]
            segments[index] = self._twins[piece.entry.name], n_frames


def get_scene_or_source(piece: ClipSegment) -> str:
    """Return the scene of the segment; without one, its family of copies, else its source."""
    return piece.entry.group or piece.family or piece.source


def group_plans(plans: Sequence[SplicedVideoPlan]) -> list[int]:
    """Return a group number for each plan; plans with segments of one scene have the same number."""
    groups = list(range(len(plans)))
    members: defaultdict[int, list[int]] = defaultdict(list)
    first: dict[str, int] = {}
    for index, plan in enumerate(plans):
        members[index].append(index)
        for shared in {get_scene_or_source(piece) for piece, _ in plan.segments}:
            current, earlier = groups[index], groups[first.setdefault(shared, index)]
            if current != earlier:
                low, high = sorted((current, earlier))
                for member in members[high]:
                    groups[member] = low
                members[low] += members.pop(high)
    return groups
