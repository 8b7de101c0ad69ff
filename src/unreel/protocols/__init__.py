"""Protocols: prompts, parsers and scorers, pure and versioned. May import `stats` and `core`.

Where to look:
    `protocol.py`: the interface of a protocol, and verdicts as text.
    `reality/`: is a clip real or generated.
    `trace/`: where, when and why a clip looks generated.
    `realism/`: a realism score from 1 to 5.
    `preference/`: which of two clips is real.
    `answer_text.py`: the text of an answer, and its parsing into a verdict.
    `label_claim_parser.py`: labels that prose claims.
    `field_parser.py`: named fields and JSON in an answer.
    `metric_estimates.py`: percentages with confidence intervals.
    `metric_definitions.py`: names, units and polarity of metrics.
"""
