"""Rewards for trainers of video generators."""
