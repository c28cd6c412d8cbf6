"""What was asked for: sentences read, the tasks that ask it, whether it can be, what was missed."""
