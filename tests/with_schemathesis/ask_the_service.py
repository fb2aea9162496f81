"""Ask a running service what its OpenAPI allows, and more, with schemathesis: `make test-service`.

Two models are served in turn, a kernel machine and the default model. Fails where schemathesis
finds a failure, where the service has logged one, or where it does not stop by itself.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from serving.conftest import fit  # noqa: E402
from serving.service_process import ServiceProcess  # noqa: E402

MODELS = {"rankrc": ("--method", "rankrc", "--lam", "0.1"), "default": ("--time-budget", "5")}


def ask(schemathesis, model, seconds, seed):
    with ServiceProcess(model) as service:
        words = [schemathesis, "--config-file", str(HERE / "schemathesis.toml"), "run"]
        hooks = os.environ | {"SCHEMATHESIS_HOOKS": str(HERE / "accepted.py")}
        words += [f"{service.url}/openapi.json", "--seed", str(seed), "--no-color"]
        words += ["--max-time", f"{seconds:.0f}"]
        # What it keeps for the next run goes beside the model.
        status = subprocess.run(words, cwd=model.parent, env=hooks).returncode
        log = service.stop()
    requests = [line for line in log if line["event"] == "request"]
    failed = [line for line in log if line["level"] == "error"]
    print(f"{model.stem}: {len(requests):,} requests, {len(failed)} logged as failures", flush=True)
    for line in failed[:5]:
        print(json.dumps(line))
    return status == 0 and not failed and log[-1]["event"] == "stopped"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--schemathesis", required=True, help="its command")
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    seconds = max(10.0, 60.0 * given.minutes / len(MODELS))
    with tempfile.TemporaryDirectory(prefix="rareclass-test-") as folder:
        models = [fit(Path(folder), *words, name=name) for name, words in MODELS.items()]
        fine = [ask(given.schemathesis, model, seconds, given.seed) for model in models]
    sys.exit(0 if all(fine) else 1)


if __name__ == "__main__":
    main()
