"""Frames for vision rewards: distilled scenes, graded frames of captions, recolouring, gates.

May import: goals, rollout, runs, runtime.
"""
