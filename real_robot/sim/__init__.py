"""Simulated arms behind the driver's contract, a null driver, a driver with latency.

May import: core, perception.
"""
