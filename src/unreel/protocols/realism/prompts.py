"""Questions of the protocol `realism`, answered by a number or a word, and verdict texts."""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from unreel.core.judgement import ErrorFamily, Rating
from unreel.core.registry import LazyImport
from unreel.core.safe_text import sanitise_lines
from unreel.core.verdict import RealismVerdict
from unreel.protocols.protocol import ProtocolPrompt, ProtocolTexts, format_verdict_part

SOURCE = "VideoRealBench, CVPR 2026"
TERMS = ("Bad", "Poor", "Normal", "Good", "Excellent")

_TASK = (
    "You are video authority evaluation expert in physics and video content analysis, carefully "
    "observe all frames of the provided video and evaluate whether its content strictly adheres "
    "to universal physical laws (including but not limited to mechanics, gravity, motion "
    "dynamics, material properties, and spatial logic).\n"
    "\n"
)
_INTEGERS = (
    "Rate the video using only one of the following five integer (do not use any other "
    "expressions or modify the score term):\n"
    "\n"
    "1(Bad): The video contains unbearable errors occupying large proportion of the video, "
    "constituting severe violations of fundamental realism principles.\n"
    "\n"
    "2(Poor): The video contains significant errors occupying significant proportion of the "
    "video, demonstrating conspicuous anomalies.\n"
    "\n"
    "3(Normal): The video contains noticeable errors occupying a portion of the video, partially "
    "realistic with some inconsistencies.\n"
    "\n"
    "4(Good):The video contains only one or two minor errors, the whole video is mostly "
    "realistic and natural.\n"
    "\n"
    "5(Excellent): The whole video is fully realistic and flawless"
)
_STRUCTURE = (
    "Show your thought process within <think> </think> following the Response Structure:  \n"
    " Problem Description:[Describe the unrealistic elements in the video]  \n"
    " Standard Adherence:[Use language specific to the score criteria to explain how these "
    "issues align with the scoring standards].\n"
    "\n"
)
_THOUGHT = "Show your thought process within <think> </think>.\n\n"
_SCORE = "Finally, provide the final score within <answer> </answer>."


def _replace_scores_by_terms(integers: str) -> str:
    text = integers.replace("five integer", "five terms")
    for score, term in enumerate(TERMS, start=1):
        text = text.replace(f"{score}({term}):", f"{term}:")
    return text


# The scale ends with a full stop in figure 3 only; `score-only` is figure 4 without thoughts.
_ENDINGS = {
    "paper": f".\n\n{_STRUCTURE}{_SCORE}",
    "no-structure": f"\n\n{_THOUGHT}{_SCORE}",
    "score-only": f"\n\n{_SCORE}",
}
_FAMILIES = (
    "Then say within <family> </family> what the errors are about, using only one of the following "
    f"terms: {', '.join(family.value for family in ErrorFamily)}, none.\n\n"
)
FAMILY_PROMPTS = frozenset({"families"})
"""Variants that ask which of the three families of errors the clip shows."""
_PRINTED = frozenset({"paper", "no-structure"})
VERBAL_PROMPTS = frozenset(f"{name}-verbal" for name in _ENDINGS)
"""Variants answered by a word of `TERMS`; the others are answered by an integer."""
FREE_PROMPTS = frozenset({"no-structure", "no-structure-verbal"})
"""Variants that ask for thoughts without headings; all thoughts together are the reason."""

PROMPTS: Mapping[str, ProtocolPrompt] = MappingProxyType(
    {
        **{
            name: ProtocolPrompt(
                text=_TASK + _INTEGERS + ending,
                source=SOURCE,
                wording="paper" if name in _PRINTED else "derived",
            )
            for name, ending in _ENDINGS.items()
        },
        "families": ProtocolPrompt(
            text=f"{_TASK}{_INTEGERS}.\n\n{_STRUCTURE}{_FAMILIES}{_SCORE}",
            source=SOURCE,
            wording="derived",
        ),
        **{
            f"{name}-verbal": ProtocolPrompt(
                text=_TASK + _replace_scores_by_terms(_INTEGERS) + ending,
                source=SOURCE,
                wording="derived",
            )
            for name, ending in _ENDINGS.items()
        },
    }
)


_SCORES = len(TERMS)


def _format_score(score: int) -> str:
    return f"{score} of {_SCORES} ({TERMS[score - 1].lower()})"


def _format_correct_answer(true_rating: Rating) -> str:
    return str(true_rating.score)


def _format_answer_from_probability(p_generated: Sequence[float], prompt: str) -> str:
    score = _SCORES - min(_SCORES - 1, int(p_generated[0] * _SCORES))
    return f"<answer>{TERMS[score - 1] if prompt in VERBAL_PROMPTS else score}</answer>"


def _iter_verdict_details(verdict: RealismVerdict) -> Iterator[tuple[str, str]]:
    yield "problem", format_verdict_part(verdict.problem, sanitise_lines)
    yield "in the scale's words", format_verdict_part(verdict.adherence, sanitise_lines)
    if verdict.family is not None:
        yield "errors", format_verdict_part(verdict.family, str)


WORDING: ProtocolTexts[Rating, RealismVerdict] = ProtocolTexts(
    decides="score",
    say=_format_score,
    right=_format_correct_answer,
    phrase=_format_answer_from_probability,
    details=_iter_verdict_details,
    teaches=frozenset(PROMPTS),
    write=LazyImport("unreel.protocols.realism.parser:format_realism_training_answer"),
)
