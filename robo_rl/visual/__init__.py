"""The visual reward: distilled scenes, labels asked while learning, training data and gate."""
