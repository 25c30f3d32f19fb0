#!/usr/bin/env python3
"""Times fits of layerfit and of scipy in one run and prints the ratio.

    python3 tests/peers/fit_speed.py [--rounds N]

The problem is `tests/it/fit/three_queue.csv`: three demands from ten trials of four measures by plain least squares, started at 1, 1, 1. layerfit's time is that
of the whole fit in process, report and diagnosis included (`cargo bench --bench fit`, criterion's median); scipy's is `least_squares(method="lm")` alone, on the same
recursion in Python with complex-step derivatives, and once more on one vectorised over the populations in numpy. The seven-parameter layered fit, which scipy has no
solver for, is printed beside. The script makes its own virtual environment (.venv at the top of the repository) and installs scipy there.
"""

import argparse
import csv
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
VENV = ROOT / ".venv"
THINK = 10.0
BENCHES = {"plain": "three queues, plain", "layered": "layered/seven parameters, two whole numbers"}


def in_environment():
    try:
        import scipy  # noqa: F401
    except ImportError:
        python = VENV / "bin" / "python"
        if not python.exists():
            subprocess.check_call([sys.executable, "-m", "venv", str(VENV)])
        subprocess.check_call([str(python), "-m", "pip", "install", "--quiet", "scipy==1.17.1"])
        sys.exit(subprocess.call([str(python), __file__, *sys.argv[1:]]))


def data():
    with open(ROOT / "tests" / "it" / "fit" / "three_queue.csv") as file:
        rows = list(csv.DictReader(file))
    names = [n for n in rows[0] if not n.startswith("$")]
    return [int(r["$users"]) for r in rows], [[float(r[n]) for n in names] for r in rows]


def recursion(demands, customers):
    queue = [0.0] * len(demands)
    for n in range(1, customers + 1):
        residence = [d * (1 + q) for d, q in zip(demands, queue)]
        throughput = n / (THINK + sum(residence))
        queue = [throughput * r for r in residence]
    return residence + [throughput]


def scipy_times(rounds):
    import numpy as np
    from scipy.optimize import least_squares

    users, rows = data()
    measured = np.array(rows)

    def one_by_one(x):
        return np.array([recursion(list(x), n) for n in users])

    def together(x):
        # The recursion to the largest population passes all others on its way.
        queue, found = np.zeros(len(x), dtype=x.dtype), {}
        for n in range(1, max(users) + 1):
            residence = x * (1 + queue)
            throughput = n / (THINK + residence.sum())
            queue = throughput * residence
            found[n] = np.append(residence, throughput)
        return np.array([found[n] for n in users])

    def fit(predicted):
        def jacobian(x):
            moved = np.array(x, dtype=complex) + 1e-30j * np.eye(len(x))
            return -np.stack([predicted(row).imag.ravel() / 1e-30 for row in moved], axis=-1)

        residuals = lambda x: (measured - predicted(np.asarray(x))).ravel()
        start = time.perf_counter()
        least_squares(residuals, [1.0, 1.0, 1.0], jac=jacobian, method="lm")
        return time.perf_counter() - start

    return {name: [fit(f) for _ in range(rounds)] for name, f in [("recursion", one_by_one), ("numpy", together)]}


def our_times():
    subprocess.check_call(["cargo", "bench", "--bench", "fit", "--quiet"], cwd=ROOT, stdout=subprocess.DEVNULL)
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    found = {}
    for name, bench in BENCHES.items():
        folder = target / "criterion" / bench / "new"
        estimates = json.loads((folder / "estimates.json").read_text())
        sample = json.loads((folder / "sample.json").read_text())
        found[name] = estimates["median"]["point_estimate"] / 1e9, min(t / i for t, i in zip(sample["times"], sample["iters"])) / 1e9
    return found


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--rounds", type=int, default=50)
    asked = arguments.parse_args()
    scipy_before = scipy_times(asked.rounds)
    ours = our_times()
    # Before and after, so that a change of the machine's load in between shows.
    scipy_after = scipy_times(asked.rounds)
    median, least = ours["plain"]
    print(f"layerfit, three queues: median {1e3 * median:.3f} ms, least {1e3 * least:.3f} ms")
    for name in scipy_before:
        times = scipy_before[name] + scipy_after[name]
        middle, best = statistics.median(times), min(times)
        print(f"scipy, {name}: median {1e3 * middle:.3f} ms, least {1e3 * best:.3f} ms; {middle / median:.0f} times by medians, {best / least:.0f} by least")
    median, least = ours["layered"]
    print(f"layerfit, seven parameters of the layered model: median {1e3 * median:.0f} ms, least {1e3 * least:.0f} ms")


if __name__ == "__main__":
    in_environment()
    main()
