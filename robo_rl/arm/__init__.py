"""Episodes of a bundle on an arm: simulated, emulated, or at a port. No torch.

May import: bundles, evaluation, goals, runtime.
"""
