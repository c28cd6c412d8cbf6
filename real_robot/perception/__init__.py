"""Where objects are: cameras, tags, calibration boards, the pose filter, the occlusion bound.

May import: core.
"""
