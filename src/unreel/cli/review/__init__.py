"""Command `unreel review`."""
