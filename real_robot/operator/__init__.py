"""The operator of an arm: the handover rule, and devices (keyboard, gamepad, leader arm, script).

May import: arms, core, drivers, perception, policy, safety/stages.
"""
