"""Files of a run: the run folder with checkpoints, policies, videos, HTML. May import: runtime."""
