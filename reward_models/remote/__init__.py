"""Models behind an API: transport, budget, cache, questions, vision-language judges.

May import: nothing.
"""
