"""Creators of clips: folders, endpoints, pipelines and controls behind one contract."""
