"""Reviewers that run here: a checkpoint of a video model, loaded by transformers."""
