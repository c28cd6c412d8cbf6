"""A policy bundle, its process, the runner that feeds it, and the twin that makes observations.

May import: core, perception, safety, safety/stages.
"""
