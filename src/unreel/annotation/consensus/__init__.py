"""Consensus of several annotators about a clip, and the dissenting answers."""
