"""A model to score with, wherever it was learned."""

from pathlib import Path

from rareclass.verbs.model_file import ModelFile, load_model
from rareclass.verbs.stream.checkpoint import is_checkpoint


def open_model(path: Path) -> ModelFile:
    """Open the model file of ``rareclass fit``, or a checkpoint of ``rareclass stream``.

    Parameters
    ----------
    path : Path
        A model file; a checkpoint; or a stream's folder, which stands for its newest checkpoint.

    Raises
    ------
    InputError
        When there is no model, or it is damaged.
    """
    if not is_checkpoint(path):
        return load_model(path)
    from rareclass.verbs.stream.model import load_stream_model  # the learners, all of them

    return load_stream_model(path)
