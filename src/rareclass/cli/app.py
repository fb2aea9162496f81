"""The command ``rareclass`` with its commands."""

from collections import Counter
from collections.abc import Sequence
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from rareclass.cli.screen import be_quiet
from rareclass.errors import called_from

# In the order of ``rareclass --help``; a command's module has its name, some share one.
_COMMANDS = (
    "fit", "score", "evaluate", "monitor", "threshold", "compare", "report", "show", "export",
    "serve", "audit", "hunt", "review", "stream", "demo",
)  # fmt: skip
_MODULES = {
    "threshold": "model_file", "show": "model_file", "export": "model_file", "monitor": "evaluate",
    "serve": "score",
}  # fmt: skip


class Program(TyperGroup):
    """The program, whose messages name options of the command line."""

    def main(self, *args: Any, **options: Any) -> Any:
        """Run the command that the arguments name."""
        with called_from("command line"):
            return super().main(*args, **options)


class EachOptionOnce(TyperCommand):
    """A command that refuses an option given twice, of which the last would be taken silently."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the options; those that may be given many times are lists."""
        _, _, given = self.make_parser(ctx).parse_args(args=list(args))
        for parameter, number in Counter(given).items():
            takes_one = parameter.param_type_name == "option" and not parameter.multiple
            if number > 1 and takes_one:
                ctx.fail(f"{parameter.opts[0]} is given {number} times, and takes one value.")
        try:
            return super().parse_args(ctx, args)
        except typer.BadParameter as error:
            error.message = error.message.removeprefix("Value error, ")
            raise


def unwrapped(text: str) -> str:
    """Return a docstring with each paragraph on one line, for the terminal to wrap.

    >>> unwrapped("Score rows.\\n\\n    Writes a\\n    file.\\n    ")
    'Score rows.\\n\\nWrites a file.'
    """
    return "\n\n".join(" ".join(part.split()) for part in text.strip().split("\n\n"))


def app_for(words: Sequence[str]) -> typer.Typer:
    """Return the program with the command that `words` call; with all commands for other words."""
    called = next((word for word in words if not word.startswith("-")), "")
    app = typer.Typer(
        cls=Program,
        name="rareclass",
        help="Find a rare class in tables: train a model, estimate how good it is, choose a "
        "threshold, score new rows.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    for name in [called] if called in _COMMANDS else _COMMANDS:
        verb = vars(import_module(f"rareclass.cli.{_MODULES.get(name, name)}"))[name]
        app.command(cls=EachOptionOnce, help=unwrapped(verb.__doc__ or ""))(verb)
    app.callback()(options)
    return app


def __getattr__(name: str) -> Any:
    if name != "app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return app_for(())


def _print_version(wanted: bool) -> None:
    if wanted:
        from rareclass import __version__

        typer.echo(f"rareclass {__version__}")
        raise typer.Exit


def options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version."),
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")] = False,
) -> None:
    """Find a rare class in tables."""
    be_quiet(quiet)
