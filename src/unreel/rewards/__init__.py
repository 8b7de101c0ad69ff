"""Reward of generated clips for trainers of video generators: value, parts, map, calibration and service."""
