"""From a sentence to a task: reading, look-up of the task, goal tasks, feasibility.

May import: nothing.
"""
