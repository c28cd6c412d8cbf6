"""Environments that are not ours: any Gymnasium environment, here or in another interpreter.

May import: core, rendering, utils.
"""
