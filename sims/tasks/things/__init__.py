"""What stands on the table of task ``tabletop``: things by their names, and somebody's own MJCF."""
