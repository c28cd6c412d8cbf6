"""Rewards judged against the simulator: coverage, figures, words, reports."""
