"""Selection and storage of a model's best answers, as targets of supervised training."""

import json
import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from unreel.core.errors import InvalidValueError, UnreadableSourceError
from unreel.core.input_files import parse_json_object, read_limited_bytes
from unreel.core.output_files import OutputDirectory
from unreel.training.examples.example import TrainingExample
from unreel.training.rewards.answer_key import QuestionWithTruths
from unreel.training.rewards.reward import AnswerReward

FILE: Final = "harvest.jsonl"
_MOST_BYTES: Final = 1 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptedAnswer:
    """A sampled answer with a sufficient reward, used as a training target."""

    key: str
    """Key of the example whose question was answered."""
    name: str
    called: str
    """Label of the question's first ground truth, as one word."""
    answer: str
    reward: float
    parts: Mapping[str, float]


def is_unacceptable_answer(reward: AnswerReward) -> bool:
    """Return whether an answer, wrong, malformed or misleading, is never used at any threshold."""
    parts = dict(reward.parts)
    return parts.get("label", 0.0) <= 0 or any(part < 0 for part in parts.values()) or (
        parts.get("format", 1.0) <= 0
    )  # fmt: skip


def select_best_answers(
    tried: Sequence[tuple[QuestionWithTruths, Sequence[tuple[str, AnswerReward]]]],
    *,
    keep_from: float,
) -> tuple[AcceptedAnswer, ...]:
    """Select the best answer to each question, if its reward is at least `keep_from`.

    If one label has a higher fraction of accepted answers than another, its answers with the lowest
    rewards are dropped, so that the labels have the same proportions as in the questions.

    Raises:
        InvalidValueError: No answer is good enough, or none for one of the labels.
    """
    n_asked = Counter(question.called for question, _ in tried)
    accepted: dict[str, list[AcceptedAnswer]] = defaultdict(list)
    for question, answers in tried:
        worth = [a for a in answers if a[1].total >= keep_from and not is_unacceptable_answer(a[1])]
        if worth:
            text, reward = max(worth, key=lambda a: a[1].total)
            accepted[question.called].append(_build_accepted_answer(question, text, reward))
    _require_answers_per_label(n_asked, accepted, keep_from)
    share = min(len(accepted[called]) / n for called, n in n_asked.items())
    selected: list[AcceptedAnswer] = []
    for called, n in n_asked.items():
        best = sorted(accepted[called], key=lambda a: (-a.reward, a.key))
        selected += best[: max(1, math.floor(share * n + 1e-9))]
    return tuple(sorted(selected, key=lambda a: a.key))


def _build_accepted_answer(
    question: QuestionWithTruths, text: str, reward: AnswerReward
) -> AcceptedAnswer:
    example = question.example
    return AcceptedAnswer(
        key=example.key,
        name=example.name,
        called=question.called,
        answer=text,
        reward=reward.total,
        parts=reward.parts,
    )


def _require_answers_per_label(
    n_asked: Mapping[str, int], accepted: Mapping[str, Sequence[AcceptedAnswer]], keep_from: float
) -> None:
    remedy = (
        "Train it longer with supervision first, sample more (reward.generations), or lower "
        "reward.keep_from"
    )
    if not any(accepted.values()):
        msg = (
            f"no answer to any of {sum(n_asked.values())} questions reached a reward of {keep_from} without junk, "
            f"so there is nothing to learn. {remedy}"
        )
        raise InvalidValueError(msg)
    for called, n in n_asked.items():
        if not accepted[called]:
            msg = (
                f"no answer to the {n} questions whose truth is {called} reached a reward of {keep_from} without "
                f"junk: the next round would not be trained on them. {remedy}"
            )
            raise InvalidValueError(msg)


def write_accepted_answers(
    answers: Sequence[AcceptedAnswer], folder: OutputDirectory, made_by: str
) -> None:
    """Write one accepted answer per line with its reward; the first line contains `made_by`."""
    lines = [json.dumps({"made_by": made_by})]
    lines += [
        json.dumps(
            {
                name: _convert_mapping_to_dict(getattr(answer, name))
                for name in AcceptedAnswer.__slots__
            }
        )
        for answer in answers
    ]
    folder.write(FILE, ("\n".join(lines) + "\n").encode())


def read_accepted_answers(folder: Path, made_by: str) -> tuple[AcceptedAnswer, ...] | None:
    """Read the accepted answers in `folder`; return `None` if missing or made by other inputs.

    Args:
        folder: Directory of the training.
        made_by: Hash of the inputs, as passed to `write_accepted_answers`.

    Raises:
        UnreadableSourceError: The file is damaged.
    """
    path = folder / FILE
    if not path.exists():
        return None
    head, *lines = read_limited_bytes(path, most=_MOST_BYTES).splitlines() or [b""]
    try:
        if parse_json_object(head).get("made_by") != made_by:
            return None
        return tuple(AcceptedAnswer(**parse_json_object(line)) for line in lines)
    except (InvalidValueError, TypeError) as error:
        remedy = "Sample again: remove it and run the same command"
        raise UnreadableSourceError(str(path), "not a file of collected answers", remedy) from error


def build_accepted_examples(
    examples: Sequence[TrainingExample], accepted: Sequence[AcceptedAnswer]
) -> tuple[TrainingExample, ...]:
    """Return the examples whose questions have an accepted answer, with that answer as the target."""
    answers = {a.key: a.answer for a in accepted}
    return tuple(
        replace(example, answer=answers[example.key])
        for example in examples
        if example.key in answers
    )


def _convert_mapping_to_dict(value: Any) -> Any:
    return dict(value) if isinstance(value, Mapping) else value
