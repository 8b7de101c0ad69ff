"""The best of a model's own answers are kept for the next round: never junk, never one label alone."""

from collections import Counter
from pathlib import Path

import pytest

from training.marking import REAL_TEXT, draw_truths, fake, perfect, settled
from unreel.core.errors import InvalidValueError, UnreadableSourceError
from unreel.core.judgement import Label
from unreel.core.output_files import OutputDirectory
from unreel.core.question import Condition, Question
from unreel.protocols.box_space import parse_box_space
from unreel.protocols.trace import TRACE
from unreel.protocols.trace.ground_truth import TraceTruth
from unreel.testing.reviewers import sample_exhibit
from unreel.training.examples.example import TrainingExample
from unreel.training.rejection.accepted_answers import (
    FILE,
    build_accepted_examples,
    read_accepted_answers,
    select_best_answers,
    write_accepted_answers,
)
from unreel.training.rewards.answer_key import (
    AnswerKey,
    QuestionWithTruths,
    group_examples_by_question,
)
from unreel.training.rewards.reward import AnswerReward

TRUTHS = draw_truths(40)
TERMS = settled(TRUTHS)
PROMPT = "fine-tuning-no-explanation"
SPACE = parse_box_space("model-input 448x252", width=448, height=252)
Tried = list[tuple[QuestionWithTruths, list[tuple[str, AnswerReward]]]]


def example(number: int, truth: TraceTruth, row: int = 0) -> TrainingExample:
    clip = sample_exhibit(f"clip-{number}").clip
    question = Question(
        subject=clip.id, instrument=TRACE.instrument, condition=Condition(prompt=PROMPT)
    )
    return TrainingExample(
        key=f"{number:03}-{row}", name=str(number), question=question, clips=(clip,), truth=truth, source=""
    )  # fmt: skip


def tried(*answers: str | None, only: Label | None = None) -> Tried:
    """What came of asking each clip: `None` stands for the perfect answer."""
    found: Tried = []
    for number, truth in enumerate(TRUTHS):
        key = AnswerKey(protocol="trace", prompt=PROMPT, space=SPACE, truths=(truth,), terms=TERMS)
        texts = [perfect(truth) if text is None else text for text in answers]
        if only is not None and truth.label is not only:
            texts = [""]
        asked = QuestionWithTruths(example=example(number, truth), truths=(truth,))
        found.append((asked, [(text, key.mark(text)) for text in texts]))
    return found


def test_the_best_answer_to_each_question_is_kept_with_what_it_earned() -> None:
    kept = select_best_answers(tried("", REAL_TEXT, fake(), None), keep_from=0.5)
    assert [each.answer for each in kept] == [perfect(truth) for truth in TRUTHS]
    assert {each.reward > 0.95 for each in kept if each.called == "FAKE"} == {True}
    assert {round(each.reward, 6) for each in kept if each.called == "REAL"} == {0.6}


@pytest.mark.parametrize("junk", [fake("[0, 0, 448, 252]", 0), fake("[1, 2]"), REAL_TEXT + " The unnatural part is at [1, 1, 9, 9]."])  # fmt: skip
def test_junk_is_not_kept_however_low_the_threshold(junk: str) -> None:
    kept = select_best_answers(tried(junk, REAL_TEXT, fake()), keep_from=0)
    assert Counter(each.answer for each in kept) == {REAL_TEXT: 20, fake(): 20}


def test_labels_keep_the_shares_in_which_they_were_asked() -> None:
    found = tried(None)
    for asked, answers in found[1:21:2]:
        answers[:] = [("", AnswerReward(0.0)) for _ in answers]
        assert asked.called == "FAKE"
    assert Counter(each.called for each in select_best_answers(found, keep_from=0.5)) == {
        "REAL": 10,
        "FAKE": 10,
    }


def test_an_empty_harvest_is_refused_with_what_to_do() -> None:
    with pytest.raises(InvalidValueError, match=r"40 questions .* reward\.keep_from"):
        select_best_answers(tried("", "I cannot say"), keep_from=0.5)


def test_a_harvest_of_one_label_is_refused() -> None:
    with pytest.raises(InvalidValueError, match="whose truth is FAKE"):
        select_best_answers(tried(None, only=Label.REAL), keep_from=0.5)


def test_a_harvest_is_read_back_and_becomes_examples(tmp_path: Path) -> None:
    kept = select_best_answers(tried(None), keep_from=0.5)
    assert read_accepted_answers(tmp_path, "model 1") is None
    write_accepted_answers(kept, OutputDirectory(tmp_path), "model 1")
    assert read_accepted_answers(tmp_path, "model 1") == kept
    assert read_accepted_answers(tmp_path, "model 2") is None
    examples = [example(number, truth) for number, truth in enumerate(TRUTHS)]
    learned = build_accepted_examples([*examples, example(99, TRUTHS[0])], kept)
    assert [each.answer for each in learned] == [perfect(truth) for truth in TRUTHS]


def test_a_damaged_harvest_is_refused(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text('{"made_by": "x"}\n{"key": 1}\n')
    with pytest.raises(UnreadableSourceError, match="Sample again"):
        read_accepted_answers(tmp_path, "x")


def test_a_clip_of_several_rows_is_asked_once_with_all_its_truths() -> None:
    made = [truth for truth in TRUTHS if truth.label is Label.GENERATED][:2]
    rows = [example(1, made[0], 0), example(1, made[1], 1), example(2, made[0])]
    assert [asked.truths for asked in group_examples_by_question(rows)] == [
        (made[0], made[1]),
        (made[0],),
    ]
