"""Figures about rewards: ranking metrics, distances, screens, over-optimisation.

May import: programs.
"""
