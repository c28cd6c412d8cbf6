"""What all parts of the bridge share: the contract of a driver, clocks, configs, states, layout.

May import: nothing.
"""
