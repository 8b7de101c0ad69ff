"""Outgoing HTTP connections of reviewers and creators."""
