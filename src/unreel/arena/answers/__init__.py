"""The answers of a season as columns and counts."""
