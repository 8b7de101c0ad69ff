"""`score`, `open_benchmark`, `open_media` and `curate`."""

import asyncio
import json
from pathlib import Path

import pytest

import unreel
from unreel.core.errors import InvalidSettingError, UnknownNameError, UnreadableSourceError
from unreel.core.failure import Failure, FailureReason

REAL = "<answer>1</answer>"


@pytest.fixture
def names(films: Path) -> list[str]:
    return [entry.name for entry in unreel.open_benchmark(films)]


def test_answers_by_name_are_scored(films: Path, names: list[str]) -> None:
    answers = dict.fromkeys(names, REAL)
    card = unreel.score(answers, benchmark=films, protocol="reality")
    assert (card["real-accuracy"].value, card["fake-accuracy"].value) == (100.0, 0.0)
    opened = unreel.open_benchmark(films)
    assert unreel.score(answers, benchmark=opened, protocol="reality") == card


def test_answers_of_a_file_are_scored_and_a_failure_is_no_answer(
    films: Path, names: list[str], tmp_path: Path
) -> None:
    first, *others = names
    rows = [{"name": first, "failure": "rate-limited: busy"}]
    rows += [{"name": name, "text": REAL} for name in others]
    file = tmp_path / "answers.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)))
    card = unreel.score(file, benchmark=films, protocol="reality")
    assert (card.n_questions, card.n_answered) == (4, 3)
    assert card.failures == {"rate-limited": 1}
    given = {first: Failure(FailureReason.RATE_LIMITED, "busy")} | dict.fromkeys(others, REAL)
    assert unreel.score(given, benchmark=str(films), protocol="reality") == card


def test_an_answer_about_a_clip_that_is_not_there_is_refused(films: Path) -> None:
    with pytest.raises(UnreadableSourceError, match="the first is 'typo'"):
        unreel.score({"typo": REAL}, benchmark=films, protocol="reality")


def test_what_cannot_be_scored_is_refused_in_words(films: Path, tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'reality'"):
        unreel.score({}, benchmark=films, protocol="realty")
    with pytest.raises(InvalidSettingError, match="box_space='pixel'"):
        unreel.score({}, benchmark=films, protocol="trace")
    with pytest.raises(InvalidSettingError, match="names no splits, so none is 'tset'"):
        unreel.score({}, benchmark=films, protocol="reality", split="tset")
    with pytest.raises(UnreadableSourceError, match=r"open_run\(FOLDER\)"):
        unreel.score(tmp_path, benchmark=films, protocol="reality")
    with pytest.raises(UnreadableSourceError, match="no such file"):
        unreel.score({}, benchmark=tmp_path / "no", protocol="reality")


@pytest.mark.parametrize("trusted", [False, True])
def test_media_are_read_by_path_or_text(clip: Path, tmp_path: Path, *, trusted: bool) -> None:
    with unreel.open_media(trusted=trusted) as media:
        facts = media.probe(clip)
        sampled = media.frames(str(clip), sampling="uniform-4")
        lost = media.probe(tmp_path / "no.mp4")
    assert isinstance(facts, unreel.ClipFacts)
    assert facts.video.n_frames == 12
    assert len(sampled.frames) == 4
    assert isinstance(lost, Failure)


def _recipe(films: Path, **sections: object) -> dict[str, object]:
    source = {"path": str(films), "licence": "CC0"}
    return {"name": "set", "source": source, "freeze": {"shares": [1, 0, 0]}, **sections}


def test_clips_are_curated_into_a_benchmark_that_can_be_evaluated(
    films: Path, tmp_path: Path
) -> None:
    told: list[str] = []
    recipe = _recipe(films)
    curated = unreel.curate(
        recipe, out=tmp_path / "set", trusted=True, on_progress=lambda step, _: told.append(step)
    )
    assert curated.steps == ("ingest", "freeze")
    assert (curated.n_clips, curated.n_failed, dict(curated.left_out)) == (4, 0, {})
    assert told
    assert curated.benchmark == str(tmp_path / "set" / "benchmark")
    assert len(list(unreel.open_benchmark(curated.benchmark))) == 4
    assert unreel.curate(recipe, out=tmp_path / "set", trusted=True) == curated


def test_curating_works_inside_a_running_event_loop(films: Path, tmp_path: Path) -> None:
    async def notebook() -> unreel.CurationResult:
        return unreel.curate(_recipe(films), out=tmp_path / "set", until="ingest", trusted=True)

    assert asyncio.run(notebook()).n_clips == 4
