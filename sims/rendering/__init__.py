"""Frames of stored states: cameras, the offscreen renderer, renderers in worker processes.

May import: utils.
"""
