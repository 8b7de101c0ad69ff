"""Technical audit of an entry: a folder with one clip for each scene of a season.

The audit finds errors of names, encoding, length and licence, and file properties, marks and
metadata that reveal the label. Clips are decoded in the sandboxed media reader.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from unreel.arena.season.scenes import SeasonBenchmark, assign_scene_file_names
from unreel.core.clip import ClipFacts
from unreel.core.errors import InvalidSettingError, MediaError
from unreel.core.failure import Failure
from unreel.core.output_files import OutputDirectory
from unreel.creators.contract import CreatorInput
from unreel.creators.folder import ENDINGS
from unreel.curation.audit.clip_features import (
    AuditFeatureSet,
    ClipAuditData,
    compute_frame_features,
)
from unreel.curation.audit.label_leaks import LabelLeakFinding, audit_label_leaks
from unreel.curation.watermark.step import find_clip_watermarks
from unreel.engine.storage_access import ClipAccessSettings, provide_local_clip_file
from unreel.media.access import open_media_reader
from unreel.media.reader import MediaReader

SHORTEST_S = Fraction(1, 2)
LONGEST_S = Fraction(120)
FEWEST_FRAMES = 8
SLOWEST = Fraction(5)
FASTEST = Fraction(240)
SMALLEST_SIDE = 32
MAX_RATIO = 2
"""Maximum ratio of a clip's length, rate or width to the real clip's; larger ratios reveal the label."""
MIN_CLIPS = 6
"""Minimum number of clips of each label; with fewer, a property of one label may be chance."""
LICENCE_FILES = ("LICENSE", "LICENCE", "LICENSE.txt", "LICENCE.txt", "LICENSE.md", "LICENCE.md")
_SHOWN = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryFinding:
    """One problem that the audit found in an entry, and the affected clips."""

    check: str
    is_error: bool
    text: str
    clips: tuple[str, ...] = ()

    def __str__(self) -> str:
        more = len(self.clips) - _SHOWN
        named = ", ".join(self.clips[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
        return f"{self.check}: {self.text}" + (f" ({named})" if named else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryAudit:
    """Result of the audit of an entry: number of clips, and findings, errors first."""

    n_clips: int
    findings: tuple[EntryFinding, ...]

    @property
    def has_errors(self) -> bool:
        return any(finding.is_error for finding in self.findings)


def audit_entry_clips(
    folder: Path, benchmark: SeasonBenchmark, access: ClipAccessSettings, *, seed: int
) -> EntryAudit:
    """Check the clips in `folder` against the scenes and the real clips of a season."""
    files, problems = _match_files_with_scenes(folder, benchmark)
    if not any(OutputDirectory(folder).size(name) for name in LICENCE_FILES):
        text = f"no file {LICENCE_FILES[0]}. Add one with the licence of the clips"
        problems.append(("licence", True, text, ""))
    with ExitStack() as copies:
        reader = copies.enter_context(open_media_reader(access.settings, trusted=access.trusted))
        clips = []
        for name, scene in files.items():
            clip = _inspect_clip(name, scene, folder / name, reader)
            if isinstance(clip, Failure):
                text = "cannot be decoded completely. Encode it again, for example as H.264 in mp4"
                problems.append(("decoding", True, text, f"{name}: {clip}"))
            else:
                clips.append(clip)
        real = {}
        for scene, entry in benchmark.scenes.items():
            with suppress(MediaError):
                location = benchmark.benchmark.find(entry)
                file = copies.enter_context(provide_local_clip_file(location, access))
                clip = _inspect_clip(entry.name, scene, file, reader, is_real=True)
                if not isinstance(clip, Failure):
                    real[scene] = clip
    for clip in clips:
        other = real.get(clip.group)
        problems += _iter_clip_problems(clip, None if other is None else other.facts)
    if min(len(clips), len(real)) >= MIN_CLIPS:
        problems += _iter_property_problems(clips, list(real.values()))
        # Reviewers see the frames as well, so a model that separates frames is no finding.
        for view in audit_label_leaks([*clips, *real.values()], seed=seed).views:
            if view.view is AuditFeatureSet.FRAME or view.finding is not LabelLeakFinding.LEAKS:
                continue
            features = ", ".join(leak.feature for leak in view.leaks[:3])
            text = f"a model that sees only the {view.view.value} separates it from real clips"
            problems.append(("leaks", False, f"{text} ({view.auc}), by {features}", ""))
    merged: dict[tuple[str, bool, str], list[str]] = {}
    for check, is_error, text, name in problems:
        merged.setdefault((check, is_error, text), []).extend([name] if name else [])
    findings = [
        EntryFinding(check=check, is_error=is_error, text=text, clips=tuple(names))
        for (check, is_error, text), names in merged.items()
    ]
    findings.sort(key=lambda finding: not finding.is_error)
    return EntryAudit(n_clips=len(files), findings=tuple(findings))


_Problem = tuple[str, bool, str, str]
"""Check, whether it is an error, text, and name of the clip or ""."""


def _match_files_with_scenes(
    folder: Path, benchmark: SeasonBenchmark
) -> tuple[dict[str, str], list[_Problem]]:
    videos = [
        name
        for name in OutputDirectory(folder).files()
        if Path(name).suffix.lower() in ENDINGS and OutputDirectory(folder).size(name) is not None
    ]
    if not videos:
        raise InvalidSettingError(
            "ENTRY", f"{folder} contains no video", "Name a folder with one clip for each scene"
        )
    known: dict[str, tuple[str, str]] = {}
    for scene, stem in assign_scene_file_names(benchmark.scenes).items():
        for name in (stem, scene):
            known[name] = scene, ""
            known |= {f"{name}-{setting}": (scene, setting) for setting in CreatorInput}
    files: dict[str, str] = {}
    by_setting: defaultdict[str, list[str]] = defaultdict(list)
    problems: list[_Problem] = []
    for name in videos:
        stem = name.removesuffix(Path(name).suffix)
        if stem not in known:
            text = "no scene of the season has this name. Remove or rename the file"
            problems.append(("names", True, text, name))
            continue
        scene, setting = known[stem]
        if scene in by_setting[setting]:
            text = "a scene has several clips. Keep one"
            problems.append(("names", True, text, name))
        by_setting[setting].append(scene)
        files[name] = scene
    for setting, scenes in by_setting.items():
        for scene in benchmark.scenes:
            if scene not in scenes:
                text = f"a scene has no clip{f' from {setting}' if setting else ''}. Add it"
                problems.append(("names", True, text, scene))
    return files, problems


def _inspect_clip(
    name: str, scene: str, file: Path, reader: MediaReader, *, is_real: bool = False
) -> ClipAuditData | Failure:
    """Return the properties, marks and middle frame of a clip; a failure unless every frame decodes."""
    facts = reader.probe(file)
    if isinstance(facts, Failure):
        return facts
    if isinstance(scan := reader.scan(file), Failure):
        return scan
    middle = reader.frames(file, sampling="uniform-1", encoding="rgb24")
    return ClipAuditData(
        clip=f"{'real' if is_real else 'entry'} {name}",
        creator=None if is_real else "entry",
        group=scene,
        facts=facts,
        frame=middle
        if isinstance(middle, Failure)
        else compute_frame_features(middle.frames[0].rgb()),
        watermarks=find_clip_watermarks(file, reader=reader),
    )


def _iter_clip_problems(
    clip: ClipAuditData, real: ClipFacts | Failure | None
) -> Iterator[_Problem]:
    name, facts = clip.clip.removeprefix("entry "), clip.facts
    if isinstance(facts, Failure):  # excluded by `_inspect_clip`
        return
    video = facts.video
    limits = (
        (
            "length",
            SHORTEST_S <= video.duration_s <= LONGEST_S,
            f"must last {float(SHORTEST_S):g} to {float(LONGEST_S):g} s",
        ),
        ("length", video.n_frames >= FEWEST_FRAMES, f"must have at least {FEWEST_FRAMES} frames"),
        (
            "rate",
            SLOWEST <= video.average_rate <= FASTEST,
            f"must have {SLOWEST} to {FASTEST} frames a second",
        ),
        (
            "size",
            min(video.width, video.height) >= SMALLEST_SIDE,
            f"must have at least {SMALLEST_SIDE} pixels on each side",
        ),
    )
    for check, is_within, text in limits:
        if not is_within:
            yield check, True, text, name
    if isinstance(real, ClipFacts):
        other = real.video
        pairs = (
            ("length", "duration", video.duration_s, other.duration_s),
            ("rate", "frame rate", video.average_rate, other.average_rate),
            ("size", "width", Fraction(video.width), Fraction(other.width)),
        )
        for check, what, value, expected in pairs:
            if max(value, expected) > MAX_RATIO * min(value, expected):
                text = f"the {what} differs from the real clip's by more than {MAX_RATIO} to 1"
                yield check, False, text, name
        if (video.width > video.height) != (other.width > other.height):
            yield "size", False, "landscape while the real clip is portrait, or vice versa", name
        if video.variable_rate and not other.variable_rate:
            yield "rate", False, "the frame rate varies; that of the real clip is constant", name
        if bool(facts.audio) != bool(real.audio):
            lacks = "lacks the real clip's sound"
            has = "has sound, the real clip has none"
            yield "sound", False, has if facts.audio else lacks, name
    watermarks = clip.watermarks
    if not isinstance(watermarks, Failure) and (watermarks.found or watermarks.roaming):
        yield "watermark", False, "a visible mark reveals that the clip is generated", name


def _iter_property_problems(
    clips: Sequence[ClipAuditData], real: Sequence[ClipAuditData]
) -> Iterator[_Problem]:
    """Yield each file property that is equal in all clips of the entry and in no real clip."""
    rows: list[dict[str, str]] = []
    others: list[dict[str, str]] = []
    for items, properties in ((clips, rows), (real, others)):
        for facts in (item.facts for item in items):
            if isinstance(facts, ClipFacts):
                video = facts.video
                sound = ", ".join(f"{a.codec} {a.sample_rate_hz}" for a in facts.audio)
                tags = ", ".join(f"{t.name} {t.value}".strip() for t in facts.tags)
                properties.append(
                    {
                        "the container": facts.container,
                        "the codec": video.codec,
                        "the pixel format": video.pixel_format,
                        "the frame rate": str(video.average_rate),
                        "the frame size": f"{video.width} x {video.height}",
                        "the sound": sound or "none",
                        "the set of metadata tags": tags,
                    }
                )
    for key, value in rows[0].items():
        if all(row[key] == value for row in rows) and all(row[key] != value for row in others):
            yield "leaks", False, f"{key} is {value!a} in every clip and in no real one", ""
