"""Batched environments of tasks, their Gymnasium views, ``make`` and ``register``.

May import: core, external, rendering, robots, tasks, truth, utils.
"""
