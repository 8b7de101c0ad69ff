"""Overlaid text and logos: find them, tell of them, paint them over."""
