"""Contract tests that every `unreel.creators.contract.Creator` must pass, ours and yours.

class TestMine(CreatorKit):
    @pytest.fixture
    def creator(self) -> Creator:
        return MyCreator()
"""
# ruff: noqa: S101  these methods are tests

import asyncio
import hashlib
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar

from PIL import Image

from unreel.core.failure import Failure, FailureReason
from unreel.core.output_files import OutputDirectory
from unreel.creators.contract import ClipBrief, ClipClass, Creator, CreatorInput, GeneratedClip
from unreel.media.access import read_sample_clip
from unreel.testing.reviewers import run

SCENES = ("scene-0", "scene-1")
_SIZE = (192, 128)
_ODD_IDS = ("../escape", "/etc/passwd", "", "\0", "s" * 300)


@dataclass(slots=True)
class FakeCreatorContext:
    """Creator context for tests: a working folder, notes in memory, and no downloads."""

    folder: Path
    notes: dict[str, str] = field(default_factory=dict)

    def recall(self, what: str) -> str | None:
        """Return the note stored under the key `what`; `None` if missing."""
        return self.notes.get(what)

    def note(self, what: str, text: str) -> None:
        """Store `text` in memory under the key `what`."""
        self.notes[what] = text

    async def fetch(self, url: str, into: Path) -> Failure | None:  # noqa: ARG002  nobody is asked
        """Return a failure: creators under test cannot download files."""
        return Failure(FailureReason.NOT_NAMED, f"{url!a} is not fetched in tests")


def sample_briefs(folder: Path, settings: frozenset[CreatorInput]) -> list[ClipBrief]:
    """Return briefs of two or more scenes that cover each setting; write real clips to `folder`."""
    briefs = []
    for number in range(max(len(SCENES), len(settings))):
        setting = sorted(settings)[number % len(settings)]
        clip = read_sample_clip(f"sound-12-{number % len(SCENES)}.mp4")
        brief = ClipBrief(
            id=SCENES[number % len(SCENES)],
            setting=setting,
            text="" if setting is CreatorInput.IMAGE else "A ball crosses the picture.",
            first_frame=None if setting is CreatorInput.TEXT else sample_frame(),
            source=OutputDirectory(folder).write(f"{number}.mp4", clip),
            width=_SIZE[0],
            height=_SIZE[1],
            duration_us=1_000_000,
            seed=number,
        )
        briefs.append(brief)
    return briefs


def sample_frame() -> bytes:
    """Return a sample first frame as PNG bytes."""
    picture = Image.new("RGB", _SIZE, (40, 90, 140))
    picture.paste((220, 180, 60), (30, 40, 80, 90))
    out = io.BytesIO()
    picture.save(out, format="PNG")
    return out.getvalue()


class CreatorKit:
    """Base class of tests for a creator. Inherit it and define a fixture `creator`.

    The fixture returns a new creator, made outside any event loop.
    """

    repeatable: ClassVar[bool] = True
    """Whether the same brief and seed always give the same bytes."""
    free: ClassVar[bool] = False
    """Whether every clip has a reported cost of 0."""

    def briefs(self, folder: Path, creator: Creator) -> list[ClipBrief]:
        """Return its briefs; it must be able to make at least one. Override it for other scenes."""
        return sample_briefs(folder, creator.settings)

    def test_its_name_is_stable_and_fits_on_a_line(self, creator: Creator, tmp_path: Path) -> None:
        name = creator.name
        self._make(creator, self.briefs(tmp_path / "real", creator), tmp_path)
        assert name
        assert name.isprintable()
        assert creator.name == name

    def test_declares_counts_and_input_kinds(self, creator: Creator) -> None:
        assert isinstance(creator.side, ClipClass)
        assert creator.settings
        assert all(isinstance(setting, CreatorInput) for setting in creator.settings)

    def test_clips_are_plain_files_and_failures_have_details(
        self, creator: Creator, tmp_path: Path
    ) -> None:
        outcomes = self._make(creator, self.briefs(tmp_path / "real", creator), tmp_path)
        assert any(isinstance(outcome, GeneratedClip) for outcome, _ in outcomes)
        for outcome, desk in outcomes:
            if isinstance(outcome, Failure):
                assert outcome.detail
                continue
            assert outcome.file.parent.resolve() == desk.folder.resolve()
            assert outcome.file.is_file()
            assert not outcome.file.is_symlink()
            assert outcome.file.stat().st_size

    def test_records_provenance(self, creator: Creator, tmp_path: Path) -> None:
        for clip, _ in self._make(creator, self.briefs(tmp_path / "real", creator), tmp_path):
            if not isinstance(clip, GeneratedClip):
                continue
            assert clip.model.strip()
            assert json.loads(json.dumps(dict(clip.parameters))) == dict(clip.parameters)
            assert all(isinstance(v, str | int | float | bool) for v in clip.parameters.values())
            assert clip.cost_usd is None or clip.cost_usd >= 0
            assert clip.cost_usd == 0 or not self.free
            assert clip.traces == "" or isinstance(json.loads(clip.traces), list)

    def test_the_same_brief_gives_the_same_clip_alone_and_in_company(
        self, creator: Creator, tmp_path: Path
    ) -> None:
        briefs = self.briefs(tmp_path / "real", creator)

        async def twice() -> tuple[list[GeneratedClip | Failure], list[GeneratedClip | Failure]]:
            alone = [
                await creator.make(b, _build_creator_context(tmp_path, f"a{i}"))
                for i, b in enumerate(briefs)
            ]
            desks = [_build_creator_context(tmp_path, f"b{i}") for i in range(len(briefs))]
            return alone, await _generate_clips_concurrently(creator, briefs, desks)

        alone, together = run(creator, twice)
        assert list(map(type, alone)) == list(map(type, together))
        if self.repeatable:
            assert list(map(_digest_creator_result, alone)) == list(
                map(_digest_creator_result, together)
            )

    def test_what_cannot_be_made_is_a_failure_and_no_exception(
        self, creator: Creator, tmp_path: Path
    ) -> None:
        sound = self.briefs(tmp_path / "real", creator)[0]
        broken = OutputDirectory(tmp_path / "real").write("broken.mp4", b"no clip")
        odd = [replace(sound, id=name) for name in _ODD_IDS]
        odd += [
            replace(sound, source=broken, first_frame=b"no picture"),
            replace(sound, source=tmp_path / "gone.mp4", first_frame=None),
            replace(sound, source=None, text="\x00\ud800 not a character"),
        ]
        before = _digest_files(tmp_path / "real")
        outcomes = [outcome for outcome, _ in self._make(creator, odd, tmp_path)]
        assert all(isinstance(outcome, GeneratedClip | Failure) for outcome in outcomes)
        assert _digest_files(tmp_path / "real") == before

    def test_writes_only_into_its_folder(self, creator: Creator, tmp_path: Path) -> None:
        briefs = self.briefs(tmp_path / "real", creator)
        before = _digest_files(tmp_path)
        self._make(creator, briefs, tmp_path)
        after = {name: sha for name, sha in _digest_files(tmp_path).items() if name[0] != _DESKS}
        assert after == before

    def test_it_can_be_closed_twice(self, creator: Creator) -> None:
        async def close_again() -> None:
            await creator.close()

        run(creator, close_again)

    def _make(
        self, creator: Creator, briefs: Sequence[ClipBrief], folder: Path
    ) -> "list[tuple[GeneratedClip | Failure, FakeCreatorContext]]":
        desks = [_build_creator_context(folder, str(number)) for number in range(len(briefs))]
        outcomes = run(creator, lambda: _generate_clips_concurrently(creator, briefs, desks))
        return list(zip(outcomes, desks, strict=True))


_DESKS = "desks"


def _build_creator_context(folder: Path, name: str) -> FakeCreatorContext:
    return FakeCreatorContext(OutputDirectory(folder).make(f"{_DESKS}/{name}"))


async def _generate_clips_concurrently(
    creator: Creator, briefs: Sequence[ClipBrief], contexts: Sequence[FakeCreatorContext]
) -> list[GeneratedClip | Failure]:
    pairs = zip(briefs, contexts, strict=True)
    return await asyncio.gather(*(creator.make(brief, desk) for brief, desk in pairs))


def _digest_creator_result(outcome: GeneratedClip | Failure) -> str:
    if isinstance(outcome, Failure):
        return outcome.reason.value
    return hashlib.sha256(outcome.file.read_bytes()).hexdigest() + outcome.traces


def _digest_files(folder: Path) -> dict[tuple[str, ...], str]:
    return {
        path.relative_to(folder).parts: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
