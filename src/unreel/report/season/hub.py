"""The files by which Hugging Face lists results, in the form that its documentation calls "Evaluation Results".

`eval.yaml` belongs to the benchmark's data set, `.eval_results/*.yaml` to the repository of each entrant's model.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from unreel.arena.boards.standings import SeasonLeaderboard
from unreel.core.errors import InvalidSettingError
from unreel.core.estimate import Estimate
from unreel.core.safe_text import sanitise_line
from unreel.protocols.figures import MetricDefinition
from unreel.report.season.metric_names import SIDES, Side, figure_of, ranks_by
from unreel.report.season.view import SeasonView, get_page_name, select_side

FOLDER: Final = "hub"
DATASET_FILE: Final = f"{FOLDER}/dataset/eval.yaml"
FRAMEWORK: Final = "unreel"
_REPOSITORY: Final = re.compile(r"[\w.-]{1,96}/[\w.-]{1,96}", re.ASCII)
_ADDRESS: Final = re.compile(r"https?://[!-~]{1,2000}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class HubListing:
    """Location of the listed results."""

    dataset: str
    """`OWNER/NAME` of the benchmark on the hub."""
    url: str = ""
    """Where these pages lie, as the source of every result; "" where that is not known."""
    split: str = "test"

    def __post_init__(self) -> None:
        setting, remedy = "hub", "Write it as OWNER/NAME, as its page on the hub is called"
        if not _REPOSITORY.fullmatch(self.dataset):
            raise InvalidSettingError(setting, f"{self.dataset!a} names no data set", remedy)
        if self.url and not _ADDRESS.fullmatch(self.url):
            problem = f"{self.url!a} is no address of a page"
            setting, remedy = "url", "Write it with https://, without spaces"
            raise InvalidSettingError(setting, problem, remedy)


def hub_files(season: SeasonView, listing: HubListing) -> dict[str, str]:
    """Return the files by name: one for the data set and one for each entrant with a rank."""
    files = {DATASET_FILE: _format_registration(season, listing)}
    for side in SIDES:
        for name in dict.fromkeys(name for kind, name in season.entrants() if kind == side):
            entries = list(_iter_result_entries(season, listing, side, name))
            if entries:
                where = f"{FOLDER}/models/{get_page_name(side, name)}/.eval_results"
                files[f"{where}/unreel-{_format_slug(season.name)}.yaml"] = "".join(entries)
    return files


def task_id(season: SeasonView, side: Side, board: SeasonLeaderboard) -> str:
    """Return the hub's name of one board: from its condition, with a number if the name is taken."""
    words = [_format_slug(each.condition) for each in season.standings]
    number = season.standings.index(board)
    again = f"-{number + 1}" if words[number] in words[:number] else ""
    return f"{side}s_{words[number]}{again}"


def _format_registration(season: SeasonView, listing: HubListing) -> str:
    first = season.standings[0]
    by, whose = _get_ranking_metric(first, "reviewer"), _get_ranking_metric(first, "creator")
    less = "100 less " if whose.better == "less" else ""
    described = (
        f"Season {season.name} of an arena of video creators against reviewers. Tasks reviewers_*: {by.title.lower()} "
        f"({by.meaning}). Tasks creators_*: {less}{whose.title.lower()} ({whose.meaning})."
    )
    lines = [
        f"name: {_quote_yaml_string(season.name)}",
        f"description: {_quote_yaml_string(described)}",
        f"evaluation_framework: {_quote_yaml_string(FRAMEWORK)}",
        "tasks:",
    ]
    for board in season.standings:
        for side in SIDES:
            lines.append(f"  - id: {_quote_yaml_string(task_id(season, side, board))}")
            lines += ["    config: default", f"    split: {_quote_yaml_string(listing.split)}"]
    return "\n".join(lines) + "\n"


def _iter_result_entries(
    season: SeasonView, listing: HubListing, side: Side, name: str
) -> Iterator[str]:
    for board in season.standings:
        figure = _get_ranking_metric(board, side)
        for standing in select_side(board, side):
            known = standing.figures.get(figure.metric)
            if standing.name == name and standing.rank is not None and isinstance(known, Estimate):
                task = task_id(season, side, board)
                shown = _convert_to_higher_better(known, figure)
                told = f"{board.condition}; {_format_interval(shown)}; {standing.name}"
                yield _format_result_entry(listing, task, shown, told)


def _get_ranking_metric(board: SeasonLeaderboard, side: Side) -> MetricDefinition:
    return figure_of(ranks_by(side, select_side(board, side)))


def _convert_to_higher_better(known: Estimate, figure: MetricDefinition) -> Estimate:
    """Return the estimate so that higher is better, as the hub requires.

    A metric that is better when lower becomes 100 minus its value: for a creator, the share of
    clips that were not detected.
    """
    if figure.better != "less":
        return known
    value, low, high = 100 - known.value, 100 - known.high, 100 - known.low
    return Estimate(value=value, low=low, high=high, n=known.n, level=known.level)


def _format_interval(known: Estimate) -> str:
    return f"95 % interval {known.low:.2f} to {known.high:.2f}, n {known.n}"


def _format_result_entry(listing: HubListing, task: str, known: Estimate, notes: str) -> str:
    lines = [
        "- dataset:",
        f"    id: {_quote_yaml_string(listing.dataset)}",
        f"    task_id: {_quote_yaml_string(task)}",
        f"  value: {known.value:.4f}",
    ]
    if listing.url:
        lines += [
            "  source:",
            f"    url: {_quote_yaml_string(listing.url)}",
            "    name: unreel arena",
        ]
    lines += [
        f"  evaluation_framework: {_quote_yaml_string(FRAMEWORK)}",
        f"  notes: {_quote_yaml_string(notes)}",
    ]
    return "\n".join(lines) + "\n"


def _quote_yaml_string(text: str) -> str:
    """Return `text` as a quoted YAML string; a JSON string is also valid YAML."""
    return json.dumps(sanitise_line(text), ensure_ascii=False)


def _format_slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:60] or "main"
