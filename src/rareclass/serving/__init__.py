"""A model behind HTTP: `rareclass serve`."""

from rareclass.errors import needed_for

with needed_for("rareclass.serving", "rareclass[serve]"):
    import fastapi  # noqa: F401
    import httptools  # noqa: F401
    import jinja2  # noqa: F401
    import prometheus_client  # noqa: F401
    import uvicorn  # noqa: F401
