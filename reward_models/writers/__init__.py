"""Writers of reward programs: from templates and a formula, or by a language model.

May import: goals, programs, remote.
"""
