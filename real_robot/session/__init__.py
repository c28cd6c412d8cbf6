"""The control loop and what surrounds it: monitor, panel, replay, rescue of an arm.

May import: bus, core, log, operator, perception, policy, safety, sim.
"""
