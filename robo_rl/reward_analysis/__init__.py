"""Rewards held against the simulator's ground truth: coverage, figures, language, reports.

May import: config, datasets, datasets/sources, evaluation, goals, learners, rewards, rollout, runs,
training, vision.
"""
