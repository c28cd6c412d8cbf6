"""Readings proposed where the grammar refused: a classifier, repairs, a language model.

May import: goals, goals/grammar, remote.
"""
