"""Consensus of several annotators on the tasks of a campaign, with the dissenting answers.

Where to look:
    `consensus.py`: computation of the consensus of each task, by majority or weighted by accuracy, and merged traces.
    `outcome.py`: opinions, settings of the consensus, possible outcomes of a task, and reviews by people.
"""
