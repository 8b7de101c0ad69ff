"""Reviewers that are no models: any program, and any service, that gives a clip a score."""
