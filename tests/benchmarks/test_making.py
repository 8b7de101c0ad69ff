"""The tables of Video Reality Test, made from answers that have the counts behind the printed cells."""

import json
import runpy
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path

import pytest
from pydantic_core import to_jsonable_python

from unreel.benchmarks.imported_answers import join_answers_with_entries
from unreel.benchmarks.loader import open_benchmark
from unreel.benchmarks.published.paper_style_tables import (
    ReviewerScorecard,
    build_paper_style_table,
    read_scorecard_file,
)
from unreel.benchmarks.published.printed_tables import (
    PublishedTable,
    read_printed_count_tables,
    read_published_table,
)
from unreel.benchmarks.published.reality_test_check import check_printed_creator_cells
from unreel.benchmarks.scorable_rows import build_scorable_rows
from unreel.benchmarks.votes import join_votes_with_entries, score_votes
from unreel.core.errors import InvalidSettingError, UnknownNameError, UnreadableSourceError
from unreel.core.estimate import Coverage, Estimate, Metric, Scorecard, Unmeasured
from unreel.core.question import Condition, Instrument
from unreel.protocols.protocol import get_protocol

SCRIPT = Path(__file__).parents[2] / "docs/examples/vrt_answers.py"
NO_COUNTS = {"Veo-3.1-fast ImgText2Vid + Audio, Gemini-2.5-Flash"}
"""Printed as 19.20, which no whole count of up to 100 clips gives."""


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder: Path = tmp_path_factory.mktemp("vrt")
    runpy.run_path(str(SCRIPT))["write_all"](folder)
    return folder


def save(path: Path, document: object) -> Path:
    path.write_text(json.dumps(to_jsonable_python(document)), encoding="utf-8")
    return path


def scored(folder: Path, name: str, instrument: str, *, prompts: bool) -> list[ReviewerScorecard]:
    """What `unreel score --json` writes for each file of answers, read back."""
    found: list[ReviewerScorecard] = []
    for path in sorted(folder.glob("*.jsonl")):
        reviewer, _, prompt = path.stem.rpartition(".") if prompts else (path.stem, "", "paper")
        chosen = get_protocol(instrument)
        joined = join_answers_with_entries(
            open_benchmark(folder / "clips.csv"), path, chosen.subject
        )
        rows = build_scorable_rows(joined, chosen, prompt=prompt).rows
        document = {"scorecard": chosen.score(rows, seed=0), "prompt": prompt}
        kept = save(path.with_suffix(".json"), document)
        found += read_scorecard_file(f"{name or reviewer}={kept}")
    return found


@pytest.fixture(scope="module")
def creators(written: Path) -> PublishedTable:
    found = scored(written / "table3", "", "reality", prompts=False)
    return build_paper_style_table("reality_creators", found)


def cells(table: PublishedTable) -> dict[str, str]:
    """The cells of reviewers, by line and column."""
    beside = {"creator", "setting", "image", "text", "average", "rank"}
    return {
        f"{row['creator']} {row['setting']}, {column}": row[column]
        for row in table.rows
        for column in table.columns
        if column not in beside
    }


def test_table_3_has_the_printed_cells_but_for_those_that_do_not_follow_from_counts(
    creators: PublishedTable,
) -> None:
    printed = read_published_table("reality_creators")
    assert creators.columns == printed.columns
    names = ("creator", "setting", "image", "text")
    assert [[row[k] for k in names] for row in creators.rows] == [
        [row[k] for k in names] for row in printed.rows
    ]
    misprints = {
        m.cell: str(m.calculated)
        for m in check_printed_creator_cells(read_printed_count_tables()).misprints
    }
    assert len(misprints) == 6
    assert cells(creators) == {
        name: "" if name in NO_COUNTS else misprints.get(name, cell)
        for name, cell in cells(printed).items()
    }


def test_table_3_averages_its_own_cells_and_ranks_a_line_with_audio_with_its_base(
    creators: PublishedTable,
) -> None:
    ranks = {f"{row['creator']} {row['setting']}": row["rank"] for row in creators.rows}
    assert ranks["Sora2 ImgText2Vid + Audio"] == ranks["Sora2 ImgText2Vid"] == "11"
    assert ranks["Veo-3.1-fast ImgText2Vid + Audio"] == ""
    assert sorted(map(int, filter(None, ranks.values()))) == sorted([*range(1, 14), 11])
    for row in creators.rows[:-1]:
        own = [Decimal(row[name]) for name in creators.columns[4:-2]]
        assert abs(Decimal(row["average"]) - sum(own) / len(own)) <= Decimal("0.01")


@pytest.mark.parametrize(
    ("name", "folder", "reviewer", "instrument"),
    [
        ("reality_think", "table4", "", "reality"),
        ("reality_preference", "table5", "Qwen2.5-VL-7B", "preference"),
    ],
)
def test_tables_4_and_5_have_every_printed_cell(
    written: Path, name: str, folder: str, reviewer: str, instrument: str
) -> None:
    made = build_paper_style_table(
        name, scored(written / folder, reviewer, instrument, prompts=True)
    )
    printed = read_published_table(name)
    assert made.columns == printed.columns
    assert [*map(numbers, made.rows)] == [*map(numbers, printed.rows)]


def numbers(row: Mapping[str, str]) -> dict[str, object]:
    """The cells of a line; 0 is printed as 0 and as 0.0."""
    return {
        key: Decimal(cell) if cell.replace(".", "").isdigit() else cell for key, cell in row.items()
    }


def test_table_16_has_every_printed_cell(written: Path) -> None:
    folder = written / "table16"
    joined = join_votes_with_entries(open_benchmark(folder / "clips.csv"), folder / "votes.csv")
    document = {"scores": score_votes(joined.ballots, seed=0)}
    made = build_paper_style_table(
        "reality_human", read_scorecard_file(str(save(folder / "people.json", document)))
    )
    assert (made.columns, made.rows) == (
        read_published_table("reality_human").columns,
        read_published_table("reality_human").rows,
    )


def card(**values: float | None) -> Scorecard:
    metrics = tuple(
        Metric(
            name=name,
            value=Unmeasured("no rows")
            if value is None
            else Estimate(value=value, low=0, high=100, n=10),
            coverage=Coverage(parsed=10, asked=10),
        )
        for name, value in values.items()
    )
    instrument = Instrument("reality", 2)
    return Scorecard(instrument=instrument, n_questions=10, n_answered=10, metrics=metrics)


def of(reviewer: str, **values: float | None) -> ReviewerScorecard:
    return ReviewerScorecard(reviewer=reviewer, card=card(**values), thinks=False)


def test_lines_and_reviewers_that_the_paper_lacks_come_last_and_gaps_stay_empty() -> None:
    made = build_paper_style_table(
        "reality_creators",
        [
            of("mine", **{"caught: New": 10, "caught: sora2": 5, "caught: sora2/text2vid": 5}),
            of(
                "gpt-4O", **{"caught: sora2": 15, "caught: sora2/text2vid": 15, "caught: New": None}
            ),
        ],
    )
    assert made.columns[4:-2] == ("GPT-4o", "mine")
    assert [tuple(row.values()) for row in made.rows] == [
        ("Sora2", "Text2Vid", "0", "1", "15.00", "5.00", "10.00", "1"),
        ("New", "", "", "", "", "10.00", "", ""),
    ]


def test_sound_and_watermarks_of_a_run_are_lines_of_their_own(tmp_path: Path) -> None:
    conditions = [Condition(), Condition(audio="on"), Condition(watermark="removed")]
    scores = [
        {
            "condition": condition.written(),
            "scorecard": card(
                **dict.fromkeys(("caught: Veo", "caught: Veo/ImgText2Vid"), 10.0 * n)
            ),
        }
        for n, condition in enumerate(conditions)
    ]
    path = save(tmp_path / "judge.json", {"run": "x", "scores": scores})
    made = build_paper_style_table("reality_creators", read_scorecard_file(str(path)))
    assert [(row["setting"], row["judge"], row["rank"]) for row in made.rows] == [
        ("ImgText2Vid", "0.00", "1"),
        ("ImgText2Vid + Audio", "10.00", "1"),
        ("ImgText2Vid - Watermark", "20.00", "2"),
    ]


def test_two_figures_for_one_cell_are_refused() -> None:
    with pytest.raises(InvalidSettingError, match=r"two figures for Wan, a\..*NAME=FILE"):
        build_paper_style_table("reality_creators", [of("a", **{"caught: Wan": 1})] * 2)
    figures = {"real-accuracy": 50, "caught: Wan": 1}
    with pytest.raises(InvalidSettingError, match="two figures for a 0"):
        build_paper_style_table("reality_think", [of("a", **figures), of("a", **figures)])


def test_figures_of_another_instrument_are_refused() -> None:
    with pytest.raises(InvalidSettingError, match="no figure 'caught' of any creator"):
        build_paper_style_table("reality_human", [of("a", accuracy=1)])
    with pytest.raises(InvalidSettingError, match="Name one file"):
        build_paper_style_table("reality_human", [])
    with pytest.raises(UnknownNameError, match="Known: reality_creators, reality_human"):
        build_paper_style_table("deeptrace_test", [])


@pytest.mark.parametrize("text", ["{}", "[]", "{", '{"scorecard": {}}', '{"scores": [1]}'])
def test_a_file_that_holds_no_scores_says_what_to_give(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a=b.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UnreadableSourceError, match="Use the output of `unreel score"):
        read_scorecard_file(str(path))
