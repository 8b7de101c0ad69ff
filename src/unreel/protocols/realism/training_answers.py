"""The answers that a reviewer is trained to give to the questions of `realism`."""

from typing import Final

from unreel.core.errors import InvalidValueError
from unreel.core.judgement import Rating
from unreel.core.verdict import Unparsed
from unreel.protocols.protocol import ParserOptions
from unreel.protocols.realism.parser import parse
from unreel.protocols.realism.prompts import (
    FAMILY_PROMPTS,
    FREE_PROMPTS,
    PROMPTS,
    TERMS,
    VERBAL_PROMPTS,
)
from unreel.protocols.space import BoxSpace
from unreel.protocols.verdict_text import join_lines, require_read_back

_FLAWLESS: Final = len(TERMS)


def write(truth: Rating, prompt: str, _space: BoxSpace | None) -> str:
    """Write the reasons, if the prompt asks for them, then the score as an integer or as a word.

    If the prompt asks for thoughts without headings, the thought is the problem, because the parser
    reads such answers this way.
    """
    score = TERMS[truth.score - 1] if prompt in VERBAL_PROMPTS else str(truth.score)
    answer = f"<answer>{score}</answer>"
    if not PROMPTS[prompt].asks_to_think:
        return answer
    problem, adherence = join_lines(truth.problem), join_lines(truth.adherence)
    if not problem or (prompt not in FREE_PROMPTS and not adherence):
        msg = "no reason with the score. Train a prompt that asks for the score only: score-only"
        raise InvalidValueError(msg)
    headed = f"Problem Description: {problem}\nStandard Adherence: {adherence}"
    thought = problem if prompt in FREE_PROMPTS else headed
    family = _get_error_family(truth) if prompt in FAMILY_PROMPTS else None
    named = "" if family is None else f"<family>{family}</family>\n"
    text = f"<think>{thought}</think>\n{named}{answer}"
    verdict = parse(text, ParserOptions(prompt=prompt))
    said = None if isinstance(verdict.adherence, Unparsed) else verdict.adherence
    require_read_back(
        said=(verdict.score, verdict.problem, said, verdict.family),
        meant=(
            truth.score,
            problem,
            None if prompt in FREE_PROMPTS else adherence,
            family,
        ),
    )
    return text


def _get_error_family(truth: Rating) -> str:
    """Return the error family. Without a statement, only a flawless clip is known to have none."""
    if truth.family is not None:
        return truth.family.value
    if truth.score == _FLAWLESS:
        return "none"
    msg = "no family of errors with the score. Train a prompt that does not ask for it: paper"
    raise InvalidValueError(msg)
