"""Annotation screens, and parsers of the answers that they return."""
