"""Outgoing HTTP connections of reviewers, creators and annotation."""
