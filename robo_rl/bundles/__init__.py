"""Bundles: a policy with all that an arm must know of it, made here and run by ``real_robot``.

May import: goals, learners, runs.
"""
