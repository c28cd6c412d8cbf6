"""Datasets: demonstrations in Minari's format, LeRobot data sets, robot logs.

May import: goals, runs.
"""
