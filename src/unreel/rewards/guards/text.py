"""Text in the picture that addresses the judge."""

import re
from typing import Final

_JUDGED: Final = r"(?:video|clip|footage|movie|film|image|picture|scene)"
_REAL: Final = r"(?:100)?(?:real|authentic|genuine|realistic|notai|notfake|notgenerated|human)"
_PATTERNS: Final = (
    r"(?:ignore|disregard|forget)(?:all|any|the|your|my)*(?:previous|prior|above|earlier)?instructions?",
    rf"(?:this|the|following){_JUDGED}(?:is|was|looks|mustbe)(?:completely|totally|very|100)?{_REAL}",
    r"not(?:an)?(?:ai|computer|machine)generated",
    rf"(?:rate|score|grade|judge|label|classify|mark)(?:this|it|the|me)+{_JUDGED}?",
    r"(?:realism|quality|real)(?:score|rating)(?:is|of)?(?:5|10|100|high|max|perfect)",
    rf"(?:answer|respond|reply|output|verdict|label|prediction)(?:with|is|as|only)*{_REAL}",
    r"(?:dear|attention|note(?:to)?|hello)(?:the)?(?:judge|reviewer|evaluator|grader|annotator|assistant|model)",
    r"(?:you|judges?|reviewers?)(?:must|should|will)(?:say|answer|rate|score|give|call)",
    r"givehigh(?:est)?(?:score|rating|reward)|(?:score|rating|reward)(?:maximum|highest|perfect)",
    r"systemprompt|asanai|promptinjection",
)
"""Matched without spaces and punctuation, because readers of text in pictures often lose them."""
_ADDRESSES: Final = re.compile("|".join(_PATTERNS))


def addresses_judge(text: str) -> bool:
    """Return whether `text` asks for a verdict, states one or gives instructions."""
    return _ADDRESSES.search(re.sub(r"[^a-z0-9]", "", text.lower())) is not None
