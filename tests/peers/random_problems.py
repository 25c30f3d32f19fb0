#!/usr/bin/env python3
"""Fits ten random problems with layerfit, scipy and lmfit and compares them to six digits.

    python3 tests/peers/random_problems.py [--layerfit PATH] [--seed N]

Each problem is the closed network of the three-queue example with two to four queues, random demands, think time and populations, and
normal errors with known standard errors. Compared are estimates, standard errors, the weighted sum of squares and covariance (scipy,
`least_squares(method="lm")` with complex-step derivatives), profile intervals (lmfit, `conf_interval`, whose root finder stops at a relative 5e-5 and
whose refits stop at 1.5e-8: both are tightened here, or its ends are good to four or five digits only), and estimates under Huber's, soft-L1 and
Cauchy's loss with known errors (scipy, `loss=`, `f_scale=`). The script makes its own virtual environment (.venv at the top of the repository)
and installs scipy and lmfit there; layerfit is built with `cargo build --release` unless given.
"""

import argparse
import csv
import json
import pathlib
import random
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
VENV = ROOT / ".venv"
SIX_DIGITS = 1e-6


def in_environment():
    try:
        import lmfit  # noqa: F401
        import scipy  # noqa: F401
    except ImportError:
        python = VENV / "bin" / "python"
        if not python.exists():
            subprocess.check_call([sys.executable, "-m", "venv", str(VENV)])
        subprocess.check_call([str(python), "-m", "pip", "install", "--quiet", "scipy==1.17.1", "lmfit==1.3.4"])
        sys.exit(subprocess.call([str(python), __file__, *sys.argv[1:]]))


def mva(demands, customers, think):
    queue = [0.0] * len(demands)
    for n in range(1, customers + 1):
        residence = [d * (1 + q) for d, q in zip(demands, queue)]
        throughput = n / (think + sum(residence))
        queue = [throughput * r for r in residence]
    return residence + [throughput]


def model_text(n):
    lines = ["G \"peers\" 1e-9 100 1 0.9 -1", "P 0", "p desk i"] + [f"p p{k} f" for k in range(1, n + 1)] + ["-1", "T 0"]
    lines += ["t Users r users -1 desk z $think m $users"] + [f"t q{k} f e{k} -1 p{k}" for k in range(1, n + 1)] + ["-1", "E 0"]
    lines += ["s users 0 -1"] + [f"y users e{k} 1 -1" for k in range(1, n + 1)] + [f"s e{k} $d{k} -1" for k in range(1, n + 1)] + ["-1"]
    return "\n".join(lines) + "\n"


class Problem:
    def __init__(self, rng):
        self.n = rng.randint(2, 4)
        self.truth = [round(rng.uniform(0.5, 5), 3) for _ in range(self.n)]
        self.think = round(rng.uniform(2, 20), 2)
        self.populations = sorted(rng.sample(range(1, 16), rng.randint(6, 10)))
        self.measures = [f"residence_time(q{k})" for k in range(1, self.n + 1)] + ["throughput(Users)"]
        exact = [mva(self.truth, p, self.think) for p in self.populations]
        self.errors = [0.02 * sum(row[k] for row in exact) / len(exact) for k in range(self.n + 1)]
        self.data = [[float(f"{v + e * rng.gauss(0, 1):.9g}") for v, e in zip(row, self.errors)] for row in exact]

    def residuals(self, demands):
        out = []
        for population, row in zip(self.populations, self.data):
            out += [(z - h) / e for z, h, e in zip(row, mva(demands, population, self.think), self.errors)]
        return out

    def jacobian(self, demands):
        import numpy as np

        step = 1e-20
        columns = []
        for j in range(self.n):
            moved = [complex(d, step if i == j else 0.0) for i, d in enumerate(demands)]
            columns.append([r.imag / step for r in self.residuals(moved)])
        return np.array(columns).T

    def write(self, folder):
        model, trials = folder / "model.lqn", folder / "trials.csv"
        model.write_text(model_text(self.n))
        with open(trials, "w", newline="") as file:
            out = csv.writer(file)
            out.writerow(["$users", "$think", *[c for m in self.measures for c in (m, f"stderr({m})")]])
            for population, row in zip(self.populations, self.data):
                out.writerow([population, self.think, *[c for z, e in zip(row, self.errors) for c in (repr(z), repr(e))]])
        return model, trials


def layerfit(binary, files, n, *options):
    estimate = [a for k in range(1, n + 1) for a in ("--estimate", f"d{k}=1")]
    command = [binary, "fit", *map(str, files), *estimate, "--format", "json", *options]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


class Comparison:
    def __init__(self):
        self.worst = 0.0
        self.failed = []

    def check(self, what, found, expected, size=None):
        difference = abs(found - expected) / max(abs(expected) if size is None else size, 1e-300)
        self.worst = max(self.worst, difference)
        if not difference <= SIX_DIGITS:
            self.failed.append(f"{what}: {found!r} against {expected!r} ({difference:.1e})")


def tighten_lmfit():
    import functools

    import lmfit.confidence
    from scipy.optimize import root_scalar

    @functools.wraps(root_scalar)
    def tight(*arguments, **options):
        return root_scalar(*arguments, **{**options, "rtol": 1e-12})

    lmfit.confidence.root_scalar = tight


def compare(problem, binary, comparison, label):
    import lmfit
    import numpy as np
    from scipy.optimize import least_squares

    with tempfile.TemporaryDirectory() as folder:
        files = problem.write(pathlib.Path(folder))
        ours = layerfit(binary, files, problem.n, "--intervals", "profile")
        tight = {"xtol": 1e-15, "ftol": 1e-15, "gtol": 1e-15}
        theirs = least_squares(problem.residuals, [1.0] * problem.n, jac=problem.jacobian, method="lm", **tight)
        j = problem.jacobian(list(theirs.x))
        squares = float(np.sum(theirs.fun**2))
        mse = squares / (len(theirs.fun) - problem.n)
        covariance = mse * np.linalg.inv(j.T @ j)
        comparison.check(f"{label} sum of squares", ours["sum_of_squares"], squares)
        for k in range(problem.n):
            p = ours["parameters"][f"d{k + 1}"]
            comparison.check(f"{label} d{k + 1}", p["estimate"], theirs.x[k])
            comparison.check(f"{label} se(d{k + 1})", p["std_error"], covariance[k, k] ** 0.5)
            for i in range(problem.n):
                # Relative to the errors of both: a covariance near 0 is a difference of larger numbers.
                size = (covariance[k, k] * covariance[i, i]) ** 0.5
                comparison.check(f"{label} covariance {k}{i}", ours["covariance"][k][i], covariance[k, i], size)

        parameters = lmfit.Parameters()
        for k in range(problem.n):
            parameters.add(f"d{k + 1}", value=float(theirs.x[k]))
        values = lambda p: [float(p[f"d{k + 1}"].value) for k in range(problem.n)]
        minimizer = lmfit.Minimizer(lambda p: np.array(problem.residuals(values(p))), parameters, **tight)
        result = minimizer.minimize(method="leastsq")
        intervals = lmfit.conf_interval(minimizer, result, sigmas=[0.95], maxiter=500, prob_func=None)
        for name, found in intervals.items():
            comparison.check(f"{label} profile lower {name}", ours["parameters"][name]["lower"], found[0][1])
            comparison.check(f"{label} profile upper {name}", ours["parameters"][name]["upper"], found[2][1])

        for ours_name, theirs_name in [("huber", "huber"), ("soft-l1", "soft_l1"), ("cauchy", "cauchy")]:
            robust = layerfit(binary, files, problem.n, "--errors", "known", "--loss", f"{ours_name}=1.5")
            other = least_squares(
                problem.residuals, theirs.x, jac=problem.jacobian, method="trf", loss=theirs_name, f_scale=1.5, x_scale="jac", **tight
            )
            for k in range(problem.n):
                comparison.check(f"{label} {ours_name} d{k + 1}", robust["parameters"][f"d{k + 1}"]["estimate"], other.x[k])


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--layerfit")
    arguments.add_argument("--seed", type=int, default=2008)
    asked = arguments.parse_args()
    if not asked.layerfit:
        subprocess.check_call(["cargo", "build", "--release", "--quiet"], cwd=ROOT)
    binary = asked.layerfit or str(ROOT / "target" / "release" / "layerfit")
    rng = random.Random(asked.seed)
    comparison = Comparison()
    tighten_lmfit()
    for number in range(1, 11):
        problem = Problem(rng)
        before = len(comparison.failed)
        compare(problem, binary, comparison, f"problem {number}")
        verdict = "agrees" if len(comparison.failed) == before else "DIFFERS"
        print(f"problem {number}: {problem.n} queues, {len(problem.populations)} trials: {verdict}")
    print(f"largest relative difference {comparison.worst:.1e}")
    for failure in comparison.failed:
        print(failure)
    sys.exit(1 if comparison.failed else 0)


if __name__ == "__main__":
    in_environment()
    main()
