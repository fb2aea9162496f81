"""The command reference: each verb with its arguments and options, as the command line has them."""

from inspect import cleandoc
from pathlib import Path
from typing import Any

import typer

from rareclass.cli.command import app


def commands() -> dict[str, Any]:
    """Return the command of each verb, in the order of the help page; "" is the whole."""
    whole = typer.main.get_command(app)
    return {"": whole, **whole.commands}


def argument_name(parameter: Any) -> str:
    """Return the name of an argument as the help page shows it."""
    return str(parameter.metavar or parameter.name.upper())


def option_rows(verb: str, command: Any) -> list[tuple[str, str]]:
    """Return how an argument or option is written, and its help, for all that a verb takes."""
    context = typer.Context(command, info_name=f"rareclass {verb}".strip())
    rows = []
    for parameter in command.params:
        record = parameter.get_help_record(context)
        if record is not None:
            is_option = parameter.param_type_name == "option"
            rows.append((record[0] if is_option else argument_name(parameter), record[1]))
    return rows


def write_command_reference(folder: Path) -> None:
    """Write commands.md, unless it is there as it should be."""
    parts = [
        "# Commands\n",
        "For anyone who looks up a command or an option: what `rareclass COMMAND --help` says, "
        "made of the commands themselves. The [how-to pages](../how-to.md) show them at work.\n",
    ]
    parts += [section(verb, command) for verb, command in commands().items()]
    text = "\n".join(parts)
    path = folder / "commands.md"
    folder.mkdir(parents=True, exist_ok=True)
    if not path.is_file() or path.read_text() != text:
        path.write_text(text)


def section(verb: str, command: Any) -> str:
    """Return the Markdown of one verb."""
    title = f"rareclass {verb}".strip()
    arguments = [each for each in command.params if each.param_type_name == "argument"]
    words = " ".join(map(argument_name, arguments))
    takes = "VERB ..." if not verb else f"{words} [OPTIONS]".strip()
    lines = [f"## {title}\n", cleandoc(command.help or "") + "\n"]
    lines += ["```text", f"{title} {takes}", "```\n"]
    for written, text in option_rows(verb, command):
        lines += [f"`` {written} ``", f": {_plain(text)}\n"]
    return "\n".join(lines)


def _plain(text: str) -> str:
    """Markdown that shows the text as it is."""
    for sign in "\\`*_[]<>$|":
        text = text.replace(sign, "\\" + sign)
    return " ".join(text.split())
