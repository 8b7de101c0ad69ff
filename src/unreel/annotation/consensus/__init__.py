"""Consensus of several annotators on the tasks of a campaign, with the dissenting answers.

Where to look:
    `consensus.py`: computation of the consensus of each task.
    `outcome.py`: settings of the consensus, and the possible outcomes of a task.
    `answer_consensus.py`: scores and votes by majority, or weighted by accuracy.
    `trace_consensus.py`: traces of several annotators merged into one trace.
    `review.py`: reviews of a consensus by people.
"""
