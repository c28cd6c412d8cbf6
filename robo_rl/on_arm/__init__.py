"""Learning on an arm: one process drives it, another one learns from the logs of its episodes."""
