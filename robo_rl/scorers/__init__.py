"""Training of learned scorers on embeddings of one frozen encoder.

May import: goals, labelling, rewards, runs, runtime, vision.
"""
