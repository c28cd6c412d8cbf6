"""Encoders of frames and sentences, their training, and scores from their similarity.

May import: goals, programs.
"""
