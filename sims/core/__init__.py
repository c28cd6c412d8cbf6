"""The contract of a task, and what all simulations share: random streams, goals, kinematics.

May import: rendering.
"""
