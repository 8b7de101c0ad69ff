"""Clips from text- or image-to-video services: submitted, polled and downloaded over HTTP."""
