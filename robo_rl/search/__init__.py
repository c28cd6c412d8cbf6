"""Search over reward programs: writers propose, short trainings judge, a journal remembers."""
