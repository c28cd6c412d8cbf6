"""Training: native and Gymnasium environments, cloning, sweeps, periodic evaluation, the report.

May import: bundles, config, datasets, evaluation, goals, learners, rewards, rollout, runs, runtime,
vision.
"""
