"""Whether a gain was meant, and whether callers can tell base and head apart (docs/intent.md)."""

from perfquarry.miners.intent.behaviour import effects_of
from perfquarry.miners.intent.heuristic import IntentOpinion, opinion_of

__all__ = ["IntentOpinion", "effects_of", "opinion_of"]
