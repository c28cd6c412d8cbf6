"""Episodes that were recorded: an arm's logs, data sets of demonstrations, LeRobot's."""
