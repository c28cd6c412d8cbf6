"""A second reader for sentences as people say them, where the plain grammar refuses."""

from reward_models.goals.grammar.speech.reader import read_speech

__all__ = ["read_speech"]
