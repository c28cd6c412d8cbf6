"""Success on test seeds, baselines, failures, and tables about rewards.

May import: goals, rollout, runs.
"""
