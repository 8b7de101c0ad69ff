"""Frames and sound at exact instants. Imports `core`; its one heavy package is PyAV."""
