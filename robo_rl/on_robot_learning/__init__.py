"""Learning on an arm: one process drives it, another one learns from the logs of its episodes.

May import: arm, bundles, config, datasets, goals, learners, rewards, runs, runtime.
"""
