"""Tables in the layout of the Video Reality Test paper, filled with your own scores."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

from unreel.benchmarks.published.printed_tables import (
    PublishedTable,
    get_line_name_without_audio,
    read_published_table,
    round_to_two_places,
)
from unreel.core.errors import (
    InvalidSettingError,
    InvalidValueError,
    UnknownNameError,
    UnreadableSourceError,
)
from unreel.core.estimate import Estimate, Scorecard
from unreel.core.input_files import parse_json_object, read_limited_bytes
from unreel.core.question import Condition
from unreel.protocols.paper_formulas import PERCENT
from unreel.protocols.protocol import get_protocol

_MOST: Final = 64 << 20
_CARD: Final = TypeAdapter(Scorecard)
_CONDITION: Final = TypeAdapter(Condition)
_PROMPT: Final = "paper"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReviewerScorecard:
    """A scorecard, with its reviewer and the condition of the questions."""

    reviewer: str
    card: Scorecard
    thinks: bool
    """Whether the reviewer was asked to think before the answer."""
    variant: str = ""
    """Modification of the clips, in the paper's notation: ` + Audio`, ` - Watermark`."""


def read_scorecard_file(named: str) -> list[ReviewerScorecard]:
    """Read the scorecards in the file of the argument `NAME=FILE` or `FILE`.

    For `FILE`, the reviewer's name is the file name without its suffix. For human votes the
    majority is used: each clip counts once.

    Raises:
        UnreadableSourceError: The file was not written by `unreel score --json`.
    """
    name, _, file = named.rpartition("=") if not Path(named).is_file() else ("", "", named)
    path = Path(file)
    try:
        document = parse_json_object(read_limited_bytes(path, most=_MOST))
        return list(_iter_scorecards(document, name or path.stem))
    except (InvalidValueError, ValidationError, KeyError, TypeError) as error:
        problem = f"no scores ({type(error).__name__})"
        remedy = "Use the output of `unreel score ... --json`"
        raise UnreadableSourceError(str(path), problem, remedy) from error


def _iter_scorecards(document: Mapping[str, Any], reviewer: str) -> Iterator[ReviewerScorecard]:
    if "scorecard" in document:
        card = _CARD.validate_python(document["scorecard"])
        condition = Condition(prompt=document.get("prompt", _PROMPT))
        yield _build_reviewer_scorecard(condition, card, reviewer)
    elif isinstance(document["scores"], dict):
        card = _CARD.validate_python(document["scores"]["majority"])
        yield ReviewerScorecard(reviewer=reviewer, card=card, thinks=False)
    else:
        for score in document["scores"]:
            card = _CARD.validate_python(score["scorecard"])
            yield _build_reviewer_scorecard(
                _CONDITION.validate_python(score["condition"]), card, reviewer
            )


def _build_reviewer_scorecard(
    condition: Condition, card: Scorecard, reviewer: str
) -> ReviewerScorecard:
    protocol = get_protocol(card.instrument.protocol)
    thinks = protocol.prompt(condition.prompt).asks_to_think
    audio = " + Audio" if condition.audio == "on" else ""
    watermark = " - Watermark" if condition.watermark == "removed" else ""
    return ReviewerScorecard(
        reviewer=reviewer,
        card=card,
        thinks=thinks if condition.thinking == "default" else condition.thinking == "on",
        variant=f"{audio}{watermark}",
    )


CAUGHT: Final = "caught"
_TABLE_3: Final = ("creator", "setting", "image", "text", "average", "rank")

Cells = dict[str, str]


@dataclass(frozen=True, slots=True)
class CreatorSetting:
    """Creator of clips and its setting; "" if none is given."""

    name: str
    """Name in the metrics: `CREATOR` or `CREATOR/SETTING`."""
    creator: str
    setting: str

    def under(self, variant: str) -> "CreatorSetting":
        """Return the same creator, with `variant` (a modification of its clips) added to the setting."""
        return CreatorSetting(self.name, self.creator, f"{self.setting}{variant}".strip())

    @property
    def title(self) -> str:
        """Return the title of the row or column: creator and setting."""
        return f"{self.creator} {self.setting}".strip()


def build_paper_style_table(name: str, scored: Sequence[ReviewerScorecard]) -> PublishedTable:
    """Build the table `name` of the paper from the metrics of `scored`.

    A missing metric is an empty cell. Rows and columns of the paper come first, in its order and
    spelling, then the others.

    Raises:
        UnknownNameError: No table of that name can be built.
        InvalidSettingError: The metrics do not fit the table.
    """
    if name not in MADE:
        kind = "table that can be made from answers"
        raise UnknownNameError(kind, name, sorted(MADE))
    printed = read_published_table(name)
    columns, rows = MADE[name](scored, printed)
    return PublishedTable(name=name, source=printed.source, columns=columns, rows=tuple(rows))


Made = tuple[tuple[str, ...], Iterable[Cells]]


def _build_creators_table(scored: Sequence[ReviewerScorecard], printed: PublishedTable) -> Made:
    """Build table 3: the percentage of each creator's clips, by setting, that each reviewer catches."""
    by_title: dict[str, tuple[CreatorSetting, dict[str, float]]] = {}
    for score in scored:
        for maker in list_creator_settings(score.card, CAUGHT):
            line = maker.under(score.variant)
            _, cells = by_title.setdefault(line.title, (line, {}))
            if score.reviewer in cells:
                raise _build_duplicate_cell_error(line.title, score.reviewer)
            value = score.card[f"{CAUGHT}: {maker.name}"]
            if isinstance(value, Estimate):
                cells[score.reviewer] = value.value
    before = [column for column in printed.columns if column not in _TABLE_3]
    reviewers = _map_to_printed_names([score.reviewer for score in scored], before)
    lines = {f"{row['creator']} {row['setting']}": row for row in printed.rows}
    titles = _map_to_printed_names(by_title, lines)
    means = {
        title: fmean(cells.values())
        for title, (_, cells) in by_title.items()
        if len(cells) == len(reviewers)
    }
    ranks = _rank_rows_by_mean(means)
    rows = []
    for title, spelling in titles.items():
        maker, cells = by_title[title]
        row = {"creator": maker.creator, "setting": maker.setting, "image": "", "text": ""}
        row |= {key: lines[spelling][key] for key in row} if spelling in lines else {}
        row |= {
            label: str(round_to_two_places(cells[name])) if name in cells else ""
            for name, label in reviewers.items()
        }
        row["average"] = str(round_to_two_places(means[title])) if title in means else ""
        row["rank"] = str(ranks.get(title, ""))
        rows.append(row)
    return (*_TABLE_3[:4], *reviewers.values(), *_TABLE_3[4:]), rows


def _build_thinking_table(scored: Sequence[ReviewerScorecard], printed: PublishedTable) -> Made:
    """Build table 4: accuracy on real clips and on each creator's clips, with and without thinking."""
    metrics = {score: {"real": "real-accuracy"} for score in scored}
    for score in scored:
        metrics[score] |= {
            m.title: f"{CAUGHT}: {m.name}" for m in list_creator_settings(score.card, CAUGHT)
        }
    return _build_metric_table(metrics, printed, lambda score: {"think": str(int(score.thinks))})


def _build_preference_table(scored: Sequence[ReviewerScorecard], printed: PublishedTable) -> Made:
    """Build table 5, accuracy on pairs by creator; each row has one real-clip position, or both."""
    metrics = {
        score: {m.title: f"pooled: {m.name}" for m in list_creator_settings(score.card, "pooled")}
        for score in scored
    }

    def get_cells(score: ReviewerScorecard) -> Cells:
        orders = (score.card["real-first-accuracy"], score.card["real-second-accuracy"])
        mixed = all(isinstance(order, Estimate) for order in orders)
        return {"pairing": "pair shuffle" if mixed else "pair", "think": str(int(score.thinks))}

    return _build_metric_table(metrics, printed, get_cells)


def _build_metric_table(
    metrics: Mapping[ReviewerScorecard, Mapping[str, str]],
    printed: PublishedTable,
    get_cells: Callable[[ReviewerScorecard], Cells],
) -> Made:
    """Return the columns and rows of a table with one row for each scorecard.

    Args:
        metrics: For each scorecard, the metric of each column.
        printed: Table of the paper, for order and spelling.
        get_cells: Function that returns the cells about the condition of a scorecard.
    """
    keys = ["reviewer", *get_cells(next(iter(metrics)))]
    before = [column for column in printed.columns if column not in keys]
    columns = _map_to_printed_names(
        [title for named in metrics.values() for title in named], before
    )
    rows: dict[str, Cells] = {}
    for score, named in metrics.items():
        row = {"reviewer": score.reviewer, **get_cells(score)}
        title = " ".join(row.values())
        if title in rows:
            raise _build_duplicate_cell_error(title, "its line")
        values = {title: score.card[metric] for title, metric in named.items()}
        rows[title] = row | {
            label: f"{value.value:.1f}" if isinstance(value := values.get(name), Estimate) else ""
            for name, label in columns.items()
        }
    order = _map_to_printed_names(
        rows, [" ".join(row[key] for key in keys) for row in printed.rows]
    )
    return (*keys, *columns.values()), [rows[title] for title in order]


def _build_humans_table(scored: Sequence[ReviewerScorecard], printed: PublishedTable) -> Made:
    """Build table 16: counts of human answers on real and each creator's clips, and balanced accuracy."""
    if len(scored) != 1:
        setting, problem = "SCORES", f"this table shows one group of people, got {len(scored)}"
        raise InvalidSettingError(setting, problem, "Name one file")
    card = scored[0].card
    makers = {maker.title: maker for maker in list_creator_settings(card, CAUGHT)}
    rows = []
    for title, spelling in _map_to_printed_names(
        makers, [row["creator"] for row in printed.rows]
    ).items():
        maker = makers[title]
        real, fake = card["real-accuracy"], card[f"{CAUGHT}: {maker.name}"]
        score = card[f"balanced: {maker.name}"]
        if not (isinstance(real, Estimate) and isinstance(fake, Estimate)):
            continue
        real_right, fake_right = _compute_correct_count(real), _compute_correct_count(fake)
        rows.append(
            {
                "creator": spelling,
                "real_total": str(real.n),
                "real_predicted_fake": str(real.n - real_right),
                "real_predicted_real": str(real_right),
                "fake_total": str(fake.n),
                "fake_predicted_fake": str(fake_right),
                "fake_predicted_real": str(fake.n - fake_right),
                "score": f"{score.value / PERCENT:.4f}" if isinstance(score, Estimate) else "",
            }
        )
    return printed.columns, rows


MADE: Final[Mapping[str, Callable[[Sequence[ReviewerScorecard], PublishedTable], Made]]] = {
    "reality_creators": _build_creators_table,
    "reality_think": _build_thinking_table,
    "reality_preference": _build_preference_table,
    "reality_human": _build_humans_table,
}
"""Function that builds each table, by its name."""


def list_creator_settings(card: Scorecard, metric: str) -> list[CreatorSetting]:
    """Return the creators for which `card` has `metric`: one for each setting.

    A creator without settings is returned once.

    Raises:
        InvalidSettingError: The scorecard has that metric for no creator.
    """
    prefix = f"{metric}: "
    names = [m.name.removeprefix(prefix) for m in card.metrics if m.name.startswith(prefix)]
    if not names:
        setting, problem = "SCORES", f"no figure {metric!r} of any creator among those of "
        remedy = "Score answers about generated clips, with the prompts and settings of the table"
        raise InvalidSettingError(setting, f"{problem}{card.instrument}", remedy)
    creators = {name: [n for n in names if name.startswith(f"{n}/")] for name in names}
    parents = {creator for above in creators.values() for creator in above}
    return [
        CreatorSetting(name, max(above, key=len), name.removeprefix(f"{max(above, key=len)}/"))
        if above
        else CreatorSetting(name, name, "")
        for name, above in creators.items()
        if name not in parents
    ]


def _map_to_printed_names(titles: Iterable[str], printed: Iterable[str]) -> dict[str, str]:
    """Map names to printed spellings, printed ones first, in their order; others keep their spelling."""
    names = list(titles)
    by_key = {_normalise_name(name): name for name in names}
    known = {
        by_key[_normalise_name(name)]: name for name in printed if _normalise_name(name) in by_key
    }
    return known | {name: name for name in names if name not in known}


def _normalise_name(name: str) -> str:
    """Normalise `name` for comparison: `wan/without text` and `wan_without_text` give the same key."""
    return re.sub(r"[\W_]+", "", name).lower()


def _rank_rows_by_mean(means: Mapping[str, float]) -> dict[str, int]:
    """Rank `means` from 1, lowest first; a row with audio has the rank of the row without audio."""
    bases = {
        title: get_line_name_without_audio(title)
        if get_line_name_without_audio(title) in means
        else title
        for title in means
    }
    order = sorted({*bases.values()}, key=lambda title: means[title])
    return {title: order.index(base) + 1 for title, base in bases.items()}


def _compute_correct_count(rate: Estimate) -> int:
    return round(rate.value * rate.n / PERCENT)


def _build_duplicate_cell_error(line: str, cell: str) -> InvalidSettingError:
    setting, problem = "SCORES", f"two figures for {line}, {cell}"
    remedy = "Give each file a unique name, NAME=FILE, and one prompt and sampling to each run"
    return InvalidSettingError(setting, problem, remedy)
