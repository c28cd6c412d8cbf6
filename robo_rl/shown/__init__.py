"""What people look at: a run's page, films, curves."""
