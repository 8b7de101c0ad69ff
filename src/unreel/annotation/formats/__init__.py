"""Readers, writers and conversion of video annotation files of other tools."""
