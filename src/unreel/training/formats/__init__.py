"""Export of training examples to other trainers: their files, settings and limitations."""
