"""Scenes that tasks are built from: the table, its furniture, objects by name, a user's own MJCF.

May import: core, rendering, robots.
"""
