"""A model to score with, wherever it was learned."""

from pathlib import Path

from rareclass.verbs.model_file import ModelFile, load_model
from rareclass.verbs.stream.model import is_checkpoint, load_stream_model


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
    return load_stream_model(path) if is_checkpoint(path) else load_model(path)
