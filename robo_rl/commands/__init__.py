"""One module per command; imported when called.

May import: arm, bundles, config, datasets, evaluation, goals, learners, on_robot_learning, rewards,
runs, runtime, scorers, search, training.
"""
