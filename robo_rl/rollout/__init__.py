"""Rows stepped, their transitions kept, and rewards scored in segments that never cross a reset."""
