"""A clip is made once, whatever is killed; and what a creator leaves is looked at before it is believed."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from synthesise import ClipRecipe, synthesise
from unreel.arena.run.creators import ClipGenerationStage, SeasonCreatorContext
from unreel.arena.season.scenes import WORDLESS
from unreel.core.failure import Failure, FailureReason
from unreel.core.settings import read_environment_settings
from unreel.creators.config import CreatorFactory
from unreel.creators.contract import (
    ClipBrief,
    ClipClass,
    Creator,
    CreatorContext,
    CreatorInput,
    GeneratedClip,
    Given,
)
from unreel.engine.stage import Row
from unreel.engine.storage_access import ClipAccessSettings

CLIP = synthesise(ClipRecipe(n_frames=8))
Leave = Callable[[Path], Path]


def as_it_should(folder: Path) -> Path:
    (folder / "clip.mp4").write_bytes(CLIP)
    return folder / "clip.mp4"


@dataclass
class Maker:
    """Leaves what it is told to, and remembers what it was asked for."""

    leave: Leave = as_it_should
    cost_usd: Decimal | None = Decimal("0.5")
    name: str = "maker"
    side: ClipClass = ClipClass.GENERATED
    settings: frozenset[CreatorInput] = frozenset(CreatorInput)
    asked: list[ClipBrief] = field(default_factory=list)

    async def make(self, brief: ClipBrief, context: CreatorContext) -> GeneratedClip | Failure:
        self.asked.append(brief)
        file = self.leave(context.folder)
        return GeneratedClip(
            file=file, model="m-1", parameters={"steps": 4}, cost_usd=self.cost_usd
        )

    async def close(self) -> None: ...


@dataclass
class Bench:
    """A stage over a season's folder, with rows to put through it."""

    root: Path
    given: Given = "brief"
    left_usd: Decimal | None = None

    @property
    def folder(self) -> Path:
        return self.root / "season"

    def row(self, scene: str = "one", **more: Any) -> Row:
        real = self.root / "real.mp4"
        real.write_bytes(CLIP)
        told = {
            "key": f"{scene:0>64}",
            "attempt": 1,
            "creator": "Maker",
            "name": "maker",
            "side": "generated",
            "setting": "image+text",
            "scene": scene,
            "seed": 7,
            "_text": "a ball",
            "_location": str(real),
            "_width": 192,
            "_height": 128,
            "_duration_us": 500_000,
        }
        return told | more

    def put(self, maker: Creator, *rows: Row) -> list[Row]:
        opener = CreatorFactory(
            name="maker",
            title="Maker",
            build=partial(_same, maker),
            side=maker.side,
            settings=(CreatorInput.IMAGE_AND_TEXT,),
            given=self.given,
        )
        access = ClipAccessSettings(settings=read_environment_settings(), trusted=True)
        stage = ClipGenerationStage(opener, access, folder=self.folder, left_usd=self.left_usd)

        async def work() -> list[Row]:
            stage.setup()
            done = [await stage(row) for row in rows]
            await stage.close()
            return done

        return asyncio.run(work())


def _same(maker: Creator) -> Creator:
    return maker


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_a_clip_is_kept_with_how_it_came_about(bench: Bench) -> None:
    maker = Maker()
    (row,) = bench.put(maker, bench.row())
    assert (bench.folder / row["file"]).read_bytes() == CLIP
    assert (row["model"], row["cost_usd"], row["size_bytes"]) == ("m-1", 0.5, len(CLIP))
    assert json.loads(row["parameters"]) == {"steps": 4}
    assert json.loads(row["facts"])["video"]["n_frames"] == 8
    assert not list((bench.folder / "bench").iterdir())
    (brief,) = maker.asked
    assert (brief.id, brief.text, brief.seed, brief.source) == ("one", "a ball", 7, None)
    assert brief.first_frame is not None
    assert brief.first_frame.startswith(b"\x89PNG")


def test_a_clip_that_was_made_before_the_kill_is_not_made_again(bench: Bench) -> None:
    maker = Maker()
    (row,) = bench.put(maker, bench.row())
    (again,) = bench.put(maker, bench.row())
    assert len(maker.asked) == 1
    assert again == row
    (retried,) = bench.put(maker, bench.row(attempt=2))
    assert len(maker.asked) == 2
    assert retried["sha256"] == row["sha256"]


def test_a_noted_clip_that_was_changed_since_is_made_again(bench: Bench) -> None:
    maker = Maker()
    (row,) = bench.put(maker, bench.row())
    (bench.folder / row["file"]).write_bytes(CLIP + b"more")
    bench.put(maker, bench.row())
    assert len(maker.asked) == 2


@pytest.mark.parametrize(
    ("setting", "text", "has_picture"),
    [("text", "a ball", False), ("image", WORDLESS, True), ("image+text", "a ball", True)],
)
def test_a_creator_is_shown_what_its_setting_says(
    bench: Bench, *, setting: str, text: str, has_picture: bool
) -> None:
    maker = Maker()
    bench.put(maker, bench.row(setting=setting))
    (brief,) = maker.asked
    assert (brief.text, brief.first_frame is not None) == (text, has_picture)


def test_only_a_control_is_shown_the_real_clip(bench: Bench) -> None:
    bench.given = "source"
    maker = Maker(side=ClipClass.CONTROL)
    bench.put(maker, bench.row(_text=""))
    (brief,) = maker.asked
    assert brief.source == bench.root / "real.mp4"
    assert brief.first_frame is None


@pytest.mark.parametrize(
    ("lack", "words"),
    [
        ({"_text": " "}, "no prompt"),
        ({"_location": None, "_problem": "undecodable: cut off"}, "cut off"),
    ],
)
def test_a_scene_that_lacks_something_is_a_failure_that_says_what(
    bench: Bench, lack: dict[str, Any], words: str
) -> None:
    maker = Maker()
    (row,) = bench.put(maker, bench.row(**lack))
    assert row["failure_reason"] == "no-brief"
    assert words in row["failure_detail"]
    assert not maker.asked


def no_file(folder: Path) -> Path:
    return folder / "nothing.mp4"


def a_link(folder: Path) -> Path:
    (folder / "clip.mp4").symlink_to("/etc/passwd")
    return folder / "clip.mp4"


def elsewhere(folder: Path) -> Path:
    return as_it_should(folder.parent)


def no_video(folder: Path) -> Path:
    (folder / "clip.mp4").write_bytes(b"<html>sorry</html>")
    return folder / "clip.mp4"


def half_a_file(folder: Path) -> Path:
    (folder / "clip.mp4").write_bytes(CLIP[: len(CLIP) // 2])
    return folder / "clip.mp4"


def an_error(folder: Path) -> Path:
    msg = "out of ideas"
    raise ValueError(msg)


@pytest.mark.parametrize(
    ("leave", "reason"),
    [
        (no_file, "not-a-file"),
        (a_link, "not-a-file"),
        (elsewhere, "not-a-file"),
        (no_video, "format-refused"),
        (half_a_file, "undecodable"),
        (an_error, "stage-failed"),
    ],
)
def test_what_is_no_clip_is_a_failure_and_leaves_nothing_behind(
    bench: Bench, leave: Leave, reason: str
) -> None:
    (row,) = bench.put(Maker(leave=leave), bench.row())
    assert row["failure_reason"] == reason
    assert not (bench.folder / "made").exists()


def test_a_file_beyond_the_largest_is_refused(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UNREEL_FETCH_MB", "1")

    def large(folder: Path) -> Path:
        (folder / "clip.mp4").write_bytes(CLIP + bytes(1 << 20))
        return folder / "clip.mp4"

    (row,) = bench.put(Maker(leave=large), bench.row())
    assert row["failure_reason"] == "too-large"


def test_nobody_is_asked_once_the_budget_is_spent(bench: Bench) -> None:
    bench.left_usd = Decimal(1)
    maker = Maker()
    rows = bench.put(maker, *(bench.row(scene) for scene in ("a", "b", "c")))
    assert [row.get("failure_reason") for row in rows] == [None, None, "budget-spent"]
    assert len(maker.asked) == 2


def test_a_note_outlives_its_process_and_a_damaged_one_is_none(tmp_path: Path) -> None:
    access = ClipAccessSettings(settings=read_environment_settings(), trusted=True)
    workplace = SeasonCreatorContext(root=tmp_path, key="k" * 64, access=access)
    assert workplace.recall("job") is None
    workplace.note("job", "id-1")
    workplace.note("paid", "yes")
    assert (workplace.recall("job"), workplace.recall("paid")) == ("id-1", "yes")
    (tmp_path / "notes" / ("k" * 64) / "notes.json").write_bytes(b"{")
    assert workplace.recall("job") is None


def test_a_workplace_fetches_from_no_private_address(tmp_path: Path) -> None:
    access = ClipAccessSettings(settings=read_environment_settings(), trusted=True)
    workplace = SeasonCreatorContext(root=tmp_path, key="k", access=access)
    for url in ("http://127.0.0.1:9/x.mp4", "http://169.254.169.254/latest", "file:///etc/passwd"):
        failure = asyncio.run(workplace.fetch(url, workplace.folder / "x.mp4"))
        assert failure is not None
        assert failure.reason is FailureReason.NOT_NAMED
    outside = asyncio.run(workplace.fetch("https://example.org/x.mp4", tmp_path / "x.mp4"))
    assert outside is not None
    assert not (tmp_path / "x.mp4").exists()
