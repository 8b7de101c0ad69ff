"""Annotators' rationales, merged and reworded by a language model and then confirmed by people."""
