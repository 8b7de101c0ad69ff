"""The steps between ingest and freeze: each takes pieces and gives pieces, and keeps its findings."""
