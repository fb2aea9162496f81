"""Commands on a model file: ``rareclass threshold``, ``export``, ``show`` and ``serve``."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rareclass.cli import command as cli
from rareclass.cli import screen
from rareclass.errors import ErrorKind, needed_for, setting
from rareclass.files import check_output
from rareclass.parameters import COSTS, check_prevalence, opt, read_costs, read_limited, read_rate
from rareclass.serving import Address, Limits

if TYPE_CHECKING:
    from rareclass.model.facts import ModelFacts
    from rareclass.model.model import Model
    from rareclass.model.threshold import DecisionRule

_MOST_COLUMNS = 40
# How an estimate came about, by what the file says.
_ESTIMATED = {"held-out rows": "held-out rows", "latest rows": "the latest rows, held out"}


_PANEL = "Threshold: one of"
COST = f"The lowest cost: {COSTS}"
"""Words of ``--cost`` on costs of errors."""


def rule_option(help: str, *names: str, **more: Any) -> Any:
    """Option among those of which one sets the threshold."""
    return opt(help, names=names, rich_help_panel=_PANEL, **more)


@dataclass(frozen=True, kw_only=True)
class RuleOptions:
    """Options on what a threshold is to keep; None where the user gave none."""

    alerts: str | None = rule_option(
        "At most so many alerts: 50/day (or hour, week), which needs --time; or 50/10000 in as "
        "many rows."
    )
    min_precision: float | None = rule_option(
        "The highest recall with a precision of at least this, such as 0.3."
    )
    min_recall: float | None = rule_option(
        "The highest precision with a recall of at least this, such as 0.9."
    )
    max_fpr: float | None = rule_option(
        "The highest recall with a false-positive rate of at most this, such as 0.01."
    )
    cost: str | None = rule_option(COST)
    confidence: str | None = rule_option(
        "Probability that new rows keep the rule: 0.9 means in at least 9 of 10 samples; none "
        "gives no guarantee.",
        show_default="0.9",
    )
    prevalence: float | None = rule_option(
        "Share of rare rows where the model will be used, if it differs from the share here; "
        "probabilities are adjusted to it as well."
    )

    def rule(self, threshold: float | None = None) -> "DecisionRule | None":
        """Return the rule that the options name, None for none or where a `threshold` is given."""
        check_prevalence(self.prevalence)
        given = {"threshold": threshold, **vars(self)}
        given = {name: value for name, value in given.items() if value is not None}
        sure = {name: given.pop(name) for name in ("confidence", "prevalence") if name in given}
        if len(given) > 1:
            first, second = list(given)[:2]
            raise ErrorKind.COMBINATION.error(
                f"{setting(first)} and {setting(second)} both set the threshold.",
                "Give one of them.",
            )
        if not given or threshold is not None:
            if "confidence" in sure:
                raise ErrorKind.COMBINATION.error(
                    "--confidence needs a rule for the threshold.",
                    "Give --alerts, --min-precision, --min-recall, --max-fpr or --cost as well.",
                )
            return None
        from rareclass.model.threshold import DecisionRule

        [(name, value)] = given.items()
        return DecisionRule(self._threshold_rule(name, value))

    def _threshold_rule(self, name: str, value: Any) -> Any:
        from rareclass.decide.threshold_rule import ThresholdRule

        if name == "cost":
            costs: dict[str, Any] = read_costs("--cost", value)
            return ThresholdRule.least_cost(**costs, prevalence=self.prevalence)
        text = (self.confidence or "0.9").strip().lower()
        sure = None if text == "none" else read_limited("--confidence", text)
        shared = {"confidence": sure, "prevalence": self.prevalence}
        if name == "alerts":
            number, rows = _alerts(value)
            wanted: dict[str, Any] = {"per" if isinstance(rows, str) else "rows": rows, **shared}
            return ThresholdRule.max_alerts(number, **wanted)
        return getattr(ThresholdRule, name)(value, **shared)


def _alerts(text: str) -> tuple[int, int | str]:
    """Alerts, and in how many rows, or in which period."""
    rate = read_rate(text)
    if rate is None or 0 in rate:
        raise ErrorKind.SETTING.error(
            f"--alerts {text} cannot be read.",
            "Give a number per hour, day or week, such as 50/day, or per rows, such as 50/10000.",
        )
    return rate


@dataclass(frozen=True, kw_only=True)
class ThresholdOptions:
    """Options of ``rareclass threshold``."""

    model: Path = cli.argument("Model file of rareclass fit.")
    given: str | None = cli.argument(
        "File or database with the target that the model did not learn from. By default the rows "
        "that were held out when it was fitted, whose scores it holds.",
        "[DATA]",
        None,
    )
    out: Path | None = opt("Model file to write. Without it the threshold is shown.")
    score: float | None = rule_option("The threshold itself, a score.", "--threshold")
    rare_class: str | None = opt(
        "One of several rare classes: the threshold is of its probability. all: each has a "
        "threshold, and the rule is for rows that are called any class."
    )
    rule: RuleOptions
    time: str | None = opt(
        "Column of DATA with the time of a row, for alerts a day.",
        show_default="that of the training",
    )
    journal: Path | None = cli.journal_option()
    written: cli.OutputOptions
    table: cli.TableOptions


@cli.command
def threshold(options: ThresholdOptions) -> None:
    """Choose another threshold for a model by a rule; with --out, save the model with it.

    --prevalence alone keeps the threshold and recalibrates the probabilities to that base rate.
    """
    given, asked, journal = options.given, options.rule, options.journal
    data = None if given is None else options.table.place(given, "DATA")
    score, rare_class, out = options.score, options.rare_class, options.out
    written = options.written
    rule = asked.rule(score)
    needs_all = rare_class is not None or (rule is not None and rule.needs_time)
    if journal is not None and (data is None or needs_all):
        raise ErrorKind.COMBINATION.error(
            "--journal needs DATA, the table of all rows, and takes no --class or alerts a day.",
            "Give DATA, and alerts for so many rows, as in --alerts 50/10000.",
        )
    wanted = score if rule is None else rule
    if wanted is None and (asked.prevalence is None or data is not None):
        raise ErrorKind.SETTING.error(
            "No rule for the threshold is given.",
            "Give one of --alerts, --min-precision, --min-recall, --max-fpr, --cost and "
            "--threshold; or --prevalence alone, for the probabilities.",
        )
    from rareclass.model.model_file import save_model
    from rareclass.model.threshold import with_threshold

    if out is not None:
        read = {} if data is None else {"the file to be read": data}
        check_output(out, "--out", written.overwrite, read, may_be_inside=True)
    named = {"the model": options.model, "DATA": data, "--out": out}
    written.check({name: each for name, each in named.items() if each is not None})
    console = screen.output()
    content = _of_fit(options.model)
    screen.print_notes(console, *content.notices)
    told: dict[str, Any] = {}
    if wanted is None:
        changed = content.set_prevalence(asked.prevalence)
    else:
        known, text = None, options.table.text
        if journal is not None:
            from rareclass.review.estimates import read_checked

            known = read_checked(content, data, journal, text).rows()
        changed, chosen = with_threshold(
            content, wanted, data, options.time, text, asked.prevalence, rare_class, known
        )
        screen.print_threshold(console, chosen, changed.facts.class_thresholds, rare_class)
        told = chosen.to_dict()
    if changed.stated_prevalence is not None:
        stated = 100.0 * changed.stated_prevalence
        console.print(f"Probabilities are for {stated:.3g}% rare rows")
    if out is not None:
        save_model(out, changed)
        console.print(f"Saved {screen.file_text(out)}")
    written.give(told | {"probabilities_at": changed.prevalence})


def _of_fit(path: Path) -> "Model":
    from rareclass.model.model_file import load_model

    if path.is_dir():
        raise ErrorKind.UNSUPPORTED.error(
            f"{path} is a folder, and a threshold is kept in a model file of rareclass fit.",
            "For the folder of a stream or hunt, name one where rows are scored: rareclass score "
            "--threshold or --top.",
        )
    return load_model(path)


@dataclass(frozen=True, kw_only=True)
class ExportOptions:
    """Options of ``rareclass export``."""

    model: Path = cli.argument("Model file of rareclass fit.")
    out: Path = opt("ONNX file to write.", cli.REQUIRED)
    overwrite: bool = cli.overwrite_option()


@cli.command
def export(options: ExportOptions) -> None:
    """Write a model as an ONNX file, which is scored without Python; one input a column."""
    from rareclass.model.onnx import export_file
    from rareclass.opening import load

    out = options.out
    check_output(out, "--out", options.overwrite, {"the model": options.model})
    found = export_file(load(options.model), out)
    inputs = ", ".join(each.name for each in found.graph.input)
    outputs = ", ".join(each.name for each in found.graph.output)
    screen.output().print(f"Wrote {out}. Inputs: {inputs}. Outputs: {outputs}.")


@dataclass(frozen=True, kw_only=True)
class ShowOptions:
    """Options of ``rareclass show``."""

    model: Path = cli.argument(cli.ANY_MODEL)
    written: cli.OutputOptions


@cli.command
def show(options: ShowOptions) -> None:
    """Show what a model file holds: target, columns, estimate, ensemble members, threshold."""
    from rareclass.machine import size_text
    from rareclass.model.facts import CombinationFacts, class_thresholds_text
    from rareclass.opening import describe, open_model

    written = options.written
    written.check({"the model": options.model})
    content, console = open_model(options.model), screen.output()
    told, facts = describe(options.model, content), content.facts
    training, method = facts.training, facts.method
    named = "" if method is None else f", method {method.method}"
    title = f"{told['file']} ({size_text(told['bytes'])}): {told['model']}{named}"
    console.print(title, style="bold")
    for line in [*facts.target.description(), *_training(facts)]:
        console.print(line)
    if facts.columns:
        console.print()
        screen.print_columns(console, facts.columns, _MOST_COLUMNS)
    estimate = None if training is None else training.held_out
    if estimate is not None and training is not None:
        by = training.estimated_by or "held-out rows"
        title = f"Estimate by {_ESTIMATED.get(by, by)}, on {estimate.rows_text()}"
        console.print(f"\n{title}", style="bold")
        screen.print_estimate(console, estimate)
    if isinstance(method, CombinationFacts):
        console.print()
        screen.print_leaderboard(console, method, estimate)
    console.print()
    for line in _decision(content):
        console.print(line)
    if facts.class_rules:
        console.print(class_thresholds_text(facts.class_thresholds))
    if training is not None:
        console.print(f"Trained with {training.versions_text()}")
    screen.print_notes(console, *content.notices)
    written.give(told)


def _training(facts: "ModelFacts") -> list[str]:
    from rareclass.model.facts import CombinationFacts

    training, method = facts.training, facts.method
    if training is None:
        return []
    saved = "" if training.trained_on_all_rows else ", without the held-out rows"
    plan = ""
    if isinstance(method, CombinationFacts):
        plan = f"; effort {method.effort}: {method.plan}"
    trained = f"{training.trained_text()}{saved}, seed {training.seed}{plan}"
    return [trained, *filter(None, [training.copies_text()])]


def _decision(content: "Model") -> list[str]:
    thresholds = ", ".join(f"{each:.4g}" for each in content.thresholds)
    rule, calibration = content.facts.rule, content.rare_calibration
    line = f"Threshold {thresholds}: rows that score more are called rare"
    if not content.has_rare_class:
        line = f"Thresholds between levels: {thresholds}"
    elif rule is not None:
        line = f"Threshold {thresholds}; rule: {rule.rule_text()}"
    chance = "none"
    if calibration is not None:
        chance = f"yes ({calibration.method}), for {calibration.prevalence:.3%} rare rows"
    lines = [line, f"Probabilities: {chance}"]
    if content.held_out is not None:
        n_scores = f"{len(content.held_out.scores):,}"
        lines.append(f"Held-out scores: {n_scores} (used by rareclass threshold and report)")
    if content.cases is not None and content.cases.n_rare:
        kept = f"{content.cases.n_rare:,}"
        lines.append(f"Rare rows kept: {kept} (used by rareclass score --explain)")
    return lines


@dataclass(frozen=True, kw_only=True)
class ServeOptions:
    """Options of ``rareclass serve``."""

    model: Path = cli.argument(cli.ANY_MODEL)
    address: Address
    token_file: Path | None = opt(
        "File with the token that requests must carry. By default the environment variable "
        "RARECLASS_TOKEN, if set.",
        parser=cli.local_file,
    )
    limits: Limits
    threads: int = opt("Threads for requests of many rows.", 1, min=1)
    reload: bool = opt("Load a new model file when it appears, after a check.", True)
    log_requests: bool = opt("Write a line of JSON for each request to standard error.", True)


@cli.command
def serve(options: ServeOptions) -> None:
    """Serve a model over HTTP until Ctrl-C.

    POST /score takes rows as JSON and answers score, probability, decision
    and percentile; ?reasons=3 adds the three columns that raised each score. /openapi.json
    describes the requests; /healthz, /readyz and /metrics are for operations.
    """
    with needed_for("rareclass serve", "rareclass[serve]"):
        from rareclass.serving.live_model import LiveModel
        from rareclass.serving.middleware import find_token
        from rareclass.serving.service import Settings, serve
    token, address = find_token(options.token_file), options.address
    settings = Settings(options.limits, token, options.threads, 1.0 if options.reload else 0.0)
    served = LiveModel(options.model)
    if not address.is_loopback and token is None:
        screen.print_notes(
            screen.output(),
            f"anyone who reaches {address.host} can send requests: no token is set. Set one with "
            "RARECLASS_TOKEN or --token-file.",
        )

    def announce(address: Address) -> None:
        screen.output().print(f"Serving at {address.url} (Ctrl-C stops)")
        screen.output().print(
            f"Rows as JSON: POST {address.url}/score - what they hold: {address.url}/openapi.json"
        )

    serve(served, address, settings, options.log_requests, announce=announce)
