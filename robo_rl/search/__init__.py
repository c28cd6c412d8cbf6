"""Search over reward programs: writers propose, short trainings judge, a journal remembers.

May import: config, evaluation, goals, learners, reward_analysis, rollout, runs, runtime.
"""
