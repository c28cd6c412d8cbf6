"""Environments stepped, transitions kept, rewards scored in segments that never cross a reset.

May import: runtime.
"""
