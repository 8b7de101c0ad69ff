"""Contracts as tests, for our own parts and for those that other packages bring."""
