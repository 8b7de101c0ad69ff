"""Synthetic moving scenes: clips without rights of others."""
