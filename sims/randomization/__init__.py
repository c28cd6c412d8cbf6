"""Domain randomisation: varied physics, the sensor model, the estimated state.

May import: core, envs, rendering, robots.
"""
