"""One line of JSON for each request, which tells of its rows nothing but how many they were."""

import json
import logging
import sys
import time
import traceback
from typing import Any, TextIO

LOGGER = logging.getLogger("rareclass.serving")


class JsonLines(logging.Formatter):
    """A record as one line: time, level, event, and the fields given as `extra={"fields": ...}`.

    Of an exception its type is told and where it was raised, not its message, which may hold a
    value.
    """

    def format(self, record: logging.LogRecord) -> str:
        """The line of a record."""
        moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        told: dict[str, Any] = {
            "time": f"{moment}.{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info and record.exc_info[1] is not None:
            error = record.exc_info[1]
            frames = traceback.extract_tb(error.__traceback__)
            told["exception"] = type(error).__name__
            told["raised_at"] = [f"{frame.filename}:{frame.lineno}" for frame in frames[-5:]]
        return json.dumps(told)


def log(
    event: str, level: int = logging.INFO, error: BaseException | None = None, **fields: Any
) -> None:
    """Write a line."""
    LOGGER.log(level, event, extra={"fields": fields}, exc_info=error)


def log_to(stream: TextIO | None = None, with_requests: bool = True) -> None:
    """Send lines to a stream, by default standard error; without requests only what is more."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonLines())
    for name, level in ((LOGGER.name, logging.INFO), ("uvicorn.error", logging.WARNING)):
        logger = logging.getLogger(name)
        logger.handlers[:], logger.propagate = [handler], False
        logger.setLevel(level)
    LOGGER.filters[:] = [] if with_requests else [_is_no_request]


def _is_no_request(record: logging.LogRecord) -> bool:
    return record.getMessage() != "request"
