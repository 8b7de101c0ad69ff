"""Inputs of polishing: the prompt, and the rationales of people who gave the consensus score."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files

from unreel.annotation.campaign import AnnotationInterface
from unreel.annotation.campaign_consensus import compute_campaign_consensus
from unreel.annotation.campaign_state import CampaignRecords, iter_valid_judgements
from unreel.annotation.consensus.outcome import ConsensusRule, SettledTask
from unreel.annotation.judgements import RatingAnswer
from unreel.core.errors import InvalidSettingError
from unreel.core.identity import digest
from unreel.core.judgement import Rating


@dataclass(frozen=True, slots=True, kw_only=True)
class OriginalRationales:
    """Rationales about one clip with a settled score."""

    task: str
    """The task's id."""
    name: str
    score: int
    problems: tuple[str, ...]
    adherences: tuple[str, ...]

    @property
    def key(self) -> str:
        """Hash of all texts, so that an edited rationale is polished again."""
        parts = (str(self.score), *self.problems, "", *self.adherences)
        return digest("polish", read_polish_prompt(), *parts)[:24]

    @property
    def text(self) -> str:
        """Return all rationales as one text, one per line."""
        return "\n".join((*self.problems, *self.adherences))


def read_polish_prompt() -> str:
    """Read VideoRealBench's original prompt for polishing."""
    return files(__package__).joinpath("vrb-polish.txt").read_text(encoding="utf-8")


def ask_for(original: OriginalRationales) -> str:
    """Build the polishing prompt with the score and the people's rationales, separated by ` | `."""
    return (
        f"{read_polish_prompt().rstrip()}\n\n<Score>: {original.score}\n"
        f"<Problem Description>: {_format_texts(original.problems)}\n"
        f"<Standard Adherence>: {_format_texts(original.adherences)}\n"
    )


def iter_original_rationales(
    records: CampaignRecords, rule: ConsensusRule
) -> Iterator[OriginalRationales]:
    """Return the rationales of each clip with a consensus score, in the order of the tasks.

    All rationales with the consensus score are merged; if there is none, the one that the consensus
    chose.

    Raises:
        InvalidSettingError: The campaign asks for no scores.
    """
    if records.campaign.interface is not AnnotationInterface.REALISM:
        setting, problem = "CAMPAIGN", f"{records.campaign.name} asks for no scores and rationales"
        raise InvalidSettingError(setting, problem, "Name a campaign of --interface realism")
    consensus = compute_campaign_consensus(records, rule)
    given: dict[str, list[Rating]] = {}
    for each in iter_valid_judgements(records):
        if isinstance(each.value, RatingAnswer) and each.value.rating is not None:
            given.setdefault(each.task.id, []).append(each.value.rating)
    yield from _iter_settled_rationales(records, consensus.tasks, given)


def _iter_settled_rationales(
    records: CampaignRecords, outcomes: Mapping[str, object], given: Mapping[str, list[Rating]]
) -> Iterator[OriginalRationales]:
    for id_, task in records.tasks.items():
        outcome = outcomes.get(id_)
        if not isinstance(outcome, SettledTask) or not isinstance(outcome.value, RatingAnswer):
            continue
        if (standing := outcome.value.rating) is None:
            continue
        same = [rating for rating in given.get(id_, []) if rating.score == standing.score]
        merged = same or [standing]
        yield OriginalRationales(
            task=id_,
            name=task.names[0],
            score=standing.score,
            problems=_remove_duplicate_texts(rating.problem for rating in merged),
            adherences=_remove_duplicate_texts(rating.adherence for rating in merged),
        )


def _remove_duplicate_texts(texts: Iterator[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(text.strip() for text in texts if text.strip()))


def _format_texts(texts: tuple[str, ...]) -> str:
    return " | ".join(" ".join(text.split()) for text in texts) or "(none)"
