"""Protocols: prompts, parsers and scorers, pure and versioned. May import `stats` and `core`.

Where to look:
    `protocol.py`: the interface of a protocol.
    `reality/`: real or generated.
    `trace/`: where, when and why.
    `realism/`: a score from 1 to 5.
    `preference/`: which of two clips is real.
    `locate/`: all generated segments and regions.
    `parse_answer.py`: from the text of an answer to a verdict.
    `claim_parser.py`: claims in prose.
    `field_parser.py`: named fields and JSON.
    `measure.py`: metrics of a scorecard.
    `figures.py`: names, units and polarity of metrics.
    `verdict_text.py`: verdicts as sentences.
"""
