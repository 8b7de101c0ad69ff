"""Links that lie where files are written: what they lead to stays as it is."""

import contextlib
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("lance", reason="needs the extra eval: pip install 'unreel[eval]'")

from synthesise import ClipRecipe, synthesise
from unreel.core.answer import Reply
from unreel.core.errors import UnreelError
from unreel.engine.location import StorageLocation
from unreel.engine.table import LanceTable
from unreel.evaluation.judge import (
    RULINGS,
    ExplanationPair,
    JudgeRulings,
    JudgeRulingStore,
    judge_explanations,
)
from unreel.reviewers.contract import ClipInput, InputKind, ReviewRequest
from unreel.reviewers.factory import wrap_open_reviewer

EVAL = ("eval", "{bench}", "--protocol", "reality", "--model", "always-real", "--trusted")
CURATE = ("curate", "run", "recipe.toml", "--trusted", "--out", "set")
REPORT = ("report", "run", "--out", "page")
REVIEW = (
    *("review", "a.mp4", "--model", "always-real", "--protocol", "reality", "--trusted"),
    *("--out", "evidence"),
)
ROWS = ("export", "run", "--to", "jsonl", "--out", "rows.jsonl")
PARQUET = ("export", "run", "--to", "parquet", "--out", "rows.parquet")

PLANTED: Mapping[tuple[str, ...], Mapping[str, str]] = {
    REPORT: {
        "page/index.html": "index.html",
        "page/media/{clip}.mp4": "holiday.mp4",
        "run/answers.lance": "photos",
        "run/recipe.json": "recipe.json",
    },
    (*REPORT, "--media", "copy"): {"page/media/{clip}.mp4": "holiday.mp4"},
    ("score", "run"): {"run/answers.lance": "photos", "run/recipe.json": "recipe.json"},
    (*EVAL, "--out", "run", "--retry-failed"): {
        "run/clips.lance.lock": "letter.txt",
        "run/answers.ledger": "letter.txt",
        "run/answers.ledger.new": "letter.txt",
        "run/recipe.json": "recipe.json",
        "run/answers.lance": "photos",
        "run/answers.lance/data": "photos",
        "run/answers.lance/data/x.lance": "letter.txt",
    },
    (*EVAL, "--out", "fresh"): {
        "fresh/clips.lance.lock": "letter.txt",
        "fresh/clips.ledger.new": "letter.txt",
        "fresh/recipe.json": "recipe.json",
        "fresh/answers.lance": "photos",
        "fresh/clips.lance/data": "photos",
    },
    CURATE: {
        "set/steps": "photos",
        "set/steps/ingest.lance": "photos",
        "set/steps/ingest.lance/data": "photos",
        "set/ledgers/ingest.ledger": "letter.txt",
        "set/media": "photos",
        "set/benchmark": ".",
        "set/benchmark/train/media": "photos",
        "set/benchmark/recipe.json": "recipe.json",
        "set/benchmark/train/metadata.parquet": "metadata.parquet",
        "set/quarantine.jsonl": "letter.txt",
    },
    REVIEW: {
        "evidence/evidence.html": "index.html",
        "evidence/annotated.mp4": "holiday.mp4",
        "evidence/stills": "photos",
    },
    ("frames", "a.mp4", "--out", "pictures", "--trusted"): {
        "pictures/a-000000.jpg": "photos/1.jpg"
    },
    ("curate", "inject", "a.mp4", "--category", "object-distortion", "--trusted"): {
        "a+object-distortion.mp4": "holiday.mp4",
        "a+object-distortion.mp4.part": "holiday.mp4",
    },
    ROWS: {"rows.jsonl": "new", ".rows.jsonl.part": "letter.txt"},
    PARQUET: {"rows.parquet": "new", ".rows.parquet.part": "letter.txt"},
}
CASES = [
    pytest.param(
        words, name, target, id=f"{words[0]}-{'-'.join(words[-2:])}-{name}".replace("/", ":")
    )
    for words, planted in PLANTED.items()
    for name, target in planted.items()
]


@pytest.fixture
def scene(world, run, bench) -> SimpleNamespace:
    """All that the commands name."""
    from unreel.core.content_ids import compute_clip_id

    recipe = (
        f'name = "set"\n[source]\npath = "{bench}"\nlicence = "CC0"\n[screen]\n[normalise]\nwidth = 64\nheight = 48\n'
        '[freeze]\nversion = "1"\nshares = [1, 0, 0]\n'
    )
    (world.work / "recipe.toml").write_text(recipe)
    for number, name in enumerate(("a.mp4", "b.mp4")):
        clip = synthesise(ClipRecipe(width=96, height=64, n_frames=12, seed=number))
        (world.work / name).write_bytes(clip)
    words = {"{bench}": str(bench), "{clip}": compute_clip_id(bench / "real/c0.mp4")}
    return SimpleNamespace(words=words)


def _plant(path: Path, make: Callable[[Path], None]) -> None:
    """Put something in the place of `path`, whatever was there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists():
        path.rename(path.with_name(f"was-{path.name}"))
    make(path)


def _type(scene: SimpleNamespace, call, words: tuple[str, ...]):
    return call(*(scene.words.get(word, word) for word in words))


@pytest.mark.parametrize(("words", "name", "target"), CASES)
def test_what_a_link_leads_to_is_not_touched(
    words: tuple[str, ...], name: str, target: str, scene, world, call
) -> None:
    place = world.work / name.replace("{clip}", scene.words["{clip}"])
    _plant(place, lambda path: path.symlink_to(world.victim / target))
    said = _type(scene, call, words)
    world.unharmed()
    assert said.code in {0, 1, 2}
    assert "Traceback" not in said.err
    if (world.victim / target).is_dir():
        said.refused()
        assert "name another folder" in said.err


DANGLING = [case for case in CASES if case.values[1].count("/") <= 1]


@pytest.mark.parametrize(("words", "name", "target"), DANGLING)
def test_nothing_new_appears_where_a_link_leads(
    words: tuple[str, ...], name: str, target: str, scene, world, call
) -> None:
    _plant(world.work / name, lambda path: path.symlink_to(world.victim / "not-there-yet"))
    said = _type(scene, call, words)
    world.unharmed()
    assert "Traceback" not in said.err


IN_PLACE = [
    (words, name)
    for words, planted in PLANTED.items()
    for name in planted
    if name.endswith((".lock", ".ledger", ".new", ".part", "quarantine.jsonl"))
]


@pytest.mark.parametrize(("words", "name"), IN_PLACE)
def test_a_second_name_of_a_file_is_not_written_through(
    words: tuple[str, ...], name: str, scene, world, call
) -> None:
    kept = world.work / "letter.txt"
    kept.write_text("mine")
    _plant(world.work / name, lambda path: path.hardlink_to(kept))
    said = _type(scene, call, words)
    assert kept.read_text() == "mine"
    assert "Traceback" not in said.err


@pytest.mark.parametrize(("words", "name"), [*IN_PLACE, (REPORT, "run/recipe.json")])
def test_a_pipe_is_not_waited_for(words: tuple[str, ...], name: str, scene, world, call) -> None:
    _plant(world.work / name, os.mkfifo)
    said = _type(scene, call, words)
    assert "Traceback" not in said.err


@pytest.mark.parametrize(
    ("words", "out"), [(REPORT, "page"), ((*EVAL, "--out", "fresh"), "fresh"), (CURATE, "set")]
)
def test_the_folder_that_a_person_names_may_be_a_link(
    words: tuple[str, ...], out: str, scene, world, call
) -> None:
    disk = world.work / "disk"
    disk.mkdir()
    (world.work / out).symlink_to(disk)
    said = _type(scene, call, words)
    assert said.code == 0, said.err
    assert any(disk.iterdir())
    assert (world.work / out).is_symlink()


def test_only_what_a_freeze_wrote_is_taken_away_by_the_next(scene, world, call) -> None:
    assert _type(scene, call, CURATE).code == 0
    frozen = world.work / "set/benchmark"
    mine = frozen / "my-notes.txt"
    mine.write_text("mine")
    stale = frozen / "train/media/ab" / ("ab" * 32 + ".mp4")
    stale.parent.mkdir(exist_ok=True)
    stale.write_text("of an earlier freeze")
    assert _type(scene, call, CURATE).code == 0
    assert mine.read_text() == "mine"
    assert not stale.exists()


class _Judge:
    name = "judge"
    wants: frozenset[InputKind] = frozenset()

    def box_space(self, clip_input: ClipInput) -> str:
        return "unit"

    async def answer(self, request: ReviewRequest) -> Reply:
        return Reply(text="1")

    async def close(self) -> None: ...


def _judge(run: Path) -> JudgeRulings:
    kept = JudgeRulingStore(
        table=LanceTable(StorageLocation(str(run / "rulings.lance")), RULINGS), ledgers=run
    )
    pair = ExplanationPair(clip="c", truth="a hand", predicted="a hand")
    return judge_explanations([pair], wrap_open_reviewer(_Judge()), store=kept)


def _put_in_the_way(path: Path, kind: str, world) -> None:
    match kind:
        case "link":
            path.symlink_to(world.victim / "letter.txt")
        case "dangling":
            path.symlink_to(world.victim / "new")
        case "pipe":
            os.mkfifo(path)
        case _:
            (path.parent / "letter.txt").write_text("mine")
            path.hardlink_to(path.parent / "letter.txt")


@pytest.mark.parametrize("kind", ["link", "dangling", "pipe", "hard"])
@pytest.mark.parametrize("name", ["rulings.lance.lock", "rulings.ledger.new"])
def test_rulings_are_not_kept_through_a_link(name: str, kind: str, world) -> None:
    _put_in_the_way(world.work / name, kind, world)
    with contextlib.suppress(UnreelError):
        _judge(world.work)
    world.unharmed()
    if kind == "hard":
        assert (world.work / "letter.txt").read_text() == "mine"


@pytest.mark.parametrize("words", [(*EVAL, "--out", "fresh"), CURATE, ROWS])
def test_what_is_private_is_closed_to_others(words: tuple[str, ...], scene, world, call) -> None:
    out = world.work / words[-1]
    _type(scene, call, words)
    top = [out] if out.is_file() else list(out.iterdir())
    open_to_others = {path.name for path in top if path.stat().st_mode & 0o077}
    assert open_to_others <= {"benchmark"}


@pytest.mark.parametrize(
    ("words", "out"), [(REPORT, "page"), (CURATE, "set/benchmark")], ids=["report", "frozen"]
)
def test_what_is_published_can_be_read_by_others(
    words: tuple[str, ...], out: str, scene, world, call
) -> None:
    before = os.umask(0o022)
    try:
        assert _type(scene, call, words).code == 0
    finally:
        os.umask(before)
    for path in (world.work / out).rglob("*"):
        assert path.stat().st_mode & 0o004, path
