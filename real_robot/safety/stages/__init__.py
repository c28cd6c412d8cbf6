"""The stages of the safety filter, in their order; one file each.

==============  =================================================================================
provenance      the measurement is recent and in order, and so is what the target was made from
finite          every number is one, and there is one for each joint
(unscale)       the twin turned the policy's action into joint targets, by the task's own code
handover        who takes over goes on from the last COMMAND
smoothing       the low-pass the bundle's policy was trained behind
dial            the operator's share of full speed, less where the device is warm
pace            as much of each step as the time to stop allows
range           joint and gripper range, less a margin
clearance       the workspace, the table and the arm itself
shaping         velocity, acceleration and jerk, always able to stop in time, range and the clear
lag             the command stays near the measured joint, which bounds the force; eases who leans
effort          no pushing without moving, no hit
encode          nothing but a target within all limits goes to the driver
==============  =================================================================================

May import: core.
"""
