"""Drawn scenes that move: clips that belong to nobody."""
