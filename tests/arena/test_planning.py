"""Where the budget is short, questions come in the order of what they tell, and the same ones each time."""

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from arena.plays import lineup
from unreel.arena.answers.answer_table import SILENT, SeasonAnswerTable
from unreel.arena.run.question_plan import (
    SeasonQuestion,
    choose_informative_questions,
    count_stored_answers,
)


def ask(
    n_reviewers: int, n_creators: int, n_scenes: int
) -> tuple[list[SeasonQuestion], dict[str, str], dict[str, str]]:
    """Every question of a full season, whose each clip is, and which scene it shows."""
    clips = [(f"c{c}", f"s{s}") for c in range(n_creators) for s in range(n_scenes)]
    makers = {f"{creator}/{scene}": creator for creator, scene in clips}
    scenes = {f"{creator}/{scene}": scene for creator, scene in clips}
    questions = [
        SeasonQuestion(reviewer=f"r{r}", clip=clip, condition="main", answered=False)
        for r in range(n_reviewers)
        for clip in makers
    ]
    return questions, makers, scenes


def test_nothing_known_every_cell_gets_its_share() -> None:
    questions, makers, scenes = ask(4, 5, 10)
    chosen = choose_informative_questions(
        questions, 40, creators=makers, scenes=scenes, n_answered={}, n_generated={}, seed=1
    )
    cells = Counter((who, makers[clip]) for who, _, clip in chosen)
    assert len(cells) == 20
    assert set(cells.values()) == {2}
    assert set(Counter(scenes[clip] for _, _, clip in chosen).values()) == {4}


def test_who_is_known_least_is_asked_most() -> None:
    questions, makers, scenes = ask(3, 3, 30)
    answered = {("r0", f"c{c}"): 200 for c in range(3)}
    n_generated = dict.fromkeys(answered, 100)
    chosen = choose_informative_questions(
        questions,
        60,
        creators=makers,
        scenes=scenes,
        n_answered=answered,
        n_generated=n_generated,
        seed=1,
    )
    asked = Counter(who for who, _, _ in chosen)
    assert asked["r0"] < asked["r1"]
    assert abs(asked["r1"] - asked["r2"]) <= 3


def test_a_cell_whose_answer_is_sure_tells_less_than_an_open_one() -> None:
    questions, makers, scenes = ask(1, 2, 40)
    answered = {("r0", "c0"): 50, ("r0", "c1"): 50}
    n_generated = {("r0", "c0"): 50, ("r0", "c1"): 25}
    chosen = choose_informative_questions(
        questions,
        20,
        creators=makers,
        scenes=scenes,
        n_answered=answered,
        n_generated=n_generated,
        seed=1,
    )
    asked = Counter(makers[clip] for _, _, clip in chosen)
    assert asked["c1"] > asked["c0"]


def test_an_answered_question_is_not_chosen_again() -> None:
    questions, makers, scenes = ask(2, 2, 3)
    done = [
        SeasonQuestion(
            reviewer=q.reviewer, clip=q.clip, condition=q.condition, answered=place % 2 == 0
        )
        for place, q in enumerate(questions)
    ]
    left = {(q.reviewer, q.condition, q.clip) for q in done if not q.answered}
    for most in (4, 6, 100):
        chosen = choose_informative_questions(
            done, most, creators=makers, scenes=scenes, n_answered={}, n_generated={}, seed=3
        )
        assert len(chosen) == min(most, len(left))
        assert set(chosen) <= left


@given(
    shape=st.tuples(st.integers(1, 4), st.integers(1, 4), st.integers(1, 5)),
    most=st.integers(0, 100),
    seed=st.integers(0, 5),
)
def test_a_plan_holds_each_question_once_up_to_the_budget_and_comes_out_the_same_again(
    shape: tuple[int, int, int], most: int, seed: int
) -> None:
    questions, makers, scenes = ask(*shape)
    plans = [
        choose_informative_questions(
            asked, most, creators=makers, scenes=scenes, n_answered={}, n_generated={}, seed=seed
        )
        for asked in (questions, questions[::-1])
    ]
    assert len(plans[0]) == min(most, len(questions)) == len(set(plans[0]))
    assert set(plans[0]) == set(plans[1])


def test_plays_tell_who_caught_whom_and_what_could_not_be_read_tells_nothing() -> None:
    one = lineup(("Sora",), n_scenes=2, controls=("blur",))
    said = np.array(["real" not in name for name in one.names], dtype=np.int8)
    said[one.names.index("scene-0001/Sora")] = SILENT
    ada = SeasonAnswerTable(
        clips=one,
        condition="main",
        reviewers=("ada",),
        reviewer=np.zeros(len(said), dtype=np.int32),
        clip=np.arange(len(said), dtype=np.int32),
        answer_codes=said,
    )
    n_answered, n_generated = count_stored_answers([ada, ada], {"ada@1": "ada"})
    assert n_answered == {("ada@1", "Sora"): 2, ("ada@1", "blur"): 4, ("ada@1", ""): 4}
    assert n_generated == {("ada@1", "Sora"): 2, ("ada@1", "blur"): 4, ("ada@1", ""): 0}
