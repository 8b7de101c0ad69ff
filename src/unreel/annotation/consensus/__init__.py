"""Consensus of several annotators on the tasks of a campaign, with the dissenting answers.

Where to look:
    `consensus.py`: computation of the consensus of each task, by majority or weighted by accuracy.
    `outcome.py`: opinions, settings of the consensus, possible outcomes of a task, and reviews by people.
    `trace_consensus.py`: traces of several annotators merged into one trace.
"""
