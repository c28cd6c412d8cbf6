"""Processes, threads, memory, progress bars, remote models, sandboxed checks of reward programs.

May import: nothing.
"""
