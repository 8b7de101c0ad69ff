"""Export of the examples to other trainers: their files, settings and limitations."""
