"""A type checker knows what verbs take and give."""

import re
from pathlib import Path

import pytest
from mypy import api

ROOT = Path(__file__).parents[2]
PROGRAM = """
import unreel
from unreel import ClipInput, Failure, InputKind, Progress, Reply, ReviewRequest


class Mine:
    name = "mine"
    wants = frozenset({InputKind.FRAMES})

    def box_space(self, exhibit: ClipInput) -> str:
        return "pixel"

    async def answer(self, sheet: ReviewRequest) -> Reply | Failure:
        return Reply(text="<answer>1</answer>")

    async def close(self) -> None: ...


def hear(part: str, progress: Progress) -> None: ...


reviewer: unreel.Reviewer = Mine()
run = unreel.evaluate("b", model=reviewer, protocol="trace", limit=3, on_progress=hear)
reveal_type(run)
reveal_type(run.score())
reveal_type(run.scores())
reveal_type(unreel.open_run("r"))
reveal_type(unreel.review("c.mp4", models=["coin", Mine()], deadline_s=3.0))
reveal_type(unreel.score({"a": "REAL"}, benchmark="b", protocol="reality"))
reveal_type(unreel.open_benchmark("b"))
reveal_type(unreel.curate("recipe.toml"))
reveal_type(unreel.run_season("season.toml", only=["coin"], on_progress=hear))
reveal_type(unreel.rank_season("season", resamples=100))
reveal_type(unreel.train("recipe.toml", data=["clips"]))
reveal_type(unreel.open_campaign("votes").consensus(quorum=3))
with unreel.open_media() as media:
    reveal_type(media)


async def ask() -> None:
    reveal_type(await unreel.review_async("c.mp4", models="coin"))
"""
WRONG = """
import unreel

unreel.evaluate("b", model=3, protocol="trace")
unreel.evaluate("b", model="coin", protocol="trace", limt=3)
unreel.evaluate("b", model="coin", protocol="trace", limit="3")
unreel.review("c.mp4", models="coin", parser="strct")
unreel.revue("c.mp4")
unreel.open_campaign("votes").consensus(quorm=3)
"""


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What mypy says of both, with the settings and the memory of the project's own check."""
    folder = tmp_path_factory.mktemp("programs")
    for name, program in (("right", PROGRAM), ("wrong", WRONG)):
        (folder / f"{name}.py").write_text(program)
    settings = ["--config-file", str(ROOT / "pyproject.toml"), "--no-error-summary"]
    settings += ["--cache-dir", str(ROOT / ".mypy_cache")]
    said, problem, _ = api.run([*settings, str(folder / "right.py"), str(folder / "wrong.py")])
    assert problem == ""
    return said


@pytest.mark.slow
def test_verbs_and_what_they_give_are_typed(told: str) -> None:
    assert "right.py:" in told
    assert not [line for line in told.splitlines() if "right.py" in line and "error:" in line]
    given = re.findall(r'type is "([\w.]+)[\["]', told)
    assert [found.rpartition(".")[2] for found in given] == [
        "Run",
        "Scorecard",
        "Mapping",
        "Run",
        "Review",
        "Scorecard",
        "Benchmark",
        "CurationResult",
        "SeasonOutcome",
        "tuple",
        "TrainingResult",
        "CampaignConsensus",
        "MediaReader",
        "Review",
    ]


def test_what_a_verb_does_not_take_is_a_type_error(told: str) -> None:
    assert [int(line) for line in re.findall(r"wrong.py:(\d+): error", told)] == [4, 5, 6, 7, 8, 9]
