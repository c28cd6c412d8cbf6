"""Scorers on embeddings: success, progress, critic, value, preferences, goal images.

May import: analysis, vision.
"""
