"""Helpers without simulation: worker processes, plug-ins, name suggestions, the cache.

May import: nothing.
"""
