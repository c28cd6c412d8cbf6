"""The configuration of a run, and presets by goal.

May import: goals, learners, rewards, runtime.
"""
