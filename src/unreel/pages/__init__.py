"""Clips on pages: the page frame, the footage, and the player with its description."""
