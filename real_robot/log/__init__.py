"""What a run records: MCAP log, tape for replay, recovery of broken logs, the result.

May import: core, operator, perception, policy, safety/stages.
"""
