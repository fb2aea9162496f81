"""The measures and scores in the folder of ``rareclass stream``, as tables."""

from rareclass.verbs.stream.log import read_log, read_scores

__all__ = ["read_log", "read_scores"]
