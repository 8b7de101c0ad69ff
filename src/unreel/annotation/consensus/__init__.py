"""Consensus of several annotators, and the dissenting answers.

Where to look:
    `consensus.py`: the consensus of each task.
    `outcome.py`: settings, and the possible outcomes.
    `answer_consensus.py`: scores and votes by majority, or weighted by skill.
    `trace_consensus.py`: several boxes merged into one trace.
    `trace_matching.py`: traces that mean the same fault.
    `review.py`: reviews of a consensus.
"""
