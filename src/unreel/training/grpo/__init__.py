"""Reinforcement learning with GRPO."""
