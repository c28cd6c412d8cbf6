"""The safety filter, the guarded driver, the escape path, the fault latch.

May import: core, safety/stages.
"""
