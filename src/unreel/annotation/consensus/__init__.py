"""Consensus of several annotators, and the dissenting answers.

Where to look:
    `consensus.py`: the consensus of each task.
    `outcome.py`: settings, and the possible outcomes.
    `majority.py`: majority of scores and votes.
    `trace_consensus.py`: several boxes merged into one trace.
    `trace_matching.py`: traces that mean the same fault.
    `weighted_answers.py`: answers weighted by skill.
    `review.py`: reviews of a consensus.
"""
