#!/usr/bin/env python3
"""Fits the three-queue example with scipy and prints the figures that tests/it/fit/peers.rs holds.

    python3 tests/peers/three_queue.py            # fit tests/it/fit/three_queue.csv
    python3 tests/peers/three_queue.py --write    # make that file anew

The model is exact mean value analysis of a closed network: think time 10, three queues with demands 2, 3, 4, one to ten
customers; measured are the residence times and the throughput, with normal errors of 2 % of each measure's mean. Derivatives are taken by
complex steps, exact to rounding. Two fits: plain least squares, and each measure weighed by its own residual variance,
estimated to a fixpoint; of that also the standard errors and degrees of freedom of Kenward and Roger (1997), by the whole projection. The script makes its own virtual environment (.venv at the top of the repository) and installs scipy there.
"""

import csv
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
VENV = HERE.parent.parent / ".venv"
DATA = HERE.parent / "it" / "fit" / "three_queue.csv"
THINK = 10.0
MEASURES = ["residence_time(q1)", "residence_time(q2)", "residence_time(q3)", "throughput(Users)"]


def in_environment():
    try:
        import scipy  # noqa: F401
    except ImportError:
        python = VENV / "bin" / "python"
        if not python.exists():
            subprocess.check_call([sys.executable, "-m", "venv", str(VENV)])
        subprocess.check_call([str(python), "-m", "pip", "install", "--quiet", "scipy==1.17.1"])
        sys.exit(subprocess.call([str(python), __file__, *sys.argv[1:]]))


def mva(demands, customers):
    queue = [0.0] * len(demands)
    for n in range(1, customers + 1):
        residence = [d * (1 + q) for d, q in zip(demands, queue)]
        throughput = n / (THINK + sum(residence))
        queue = [throughput * r for r in residence]
    return residence + [throughput]


def write():
    import random

    noise = random.Random(2008)
    with open(DATA, "w", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(["$users", "$think", *MEASURES])
        exact = [mva([2.0, 3.0, 4.0], n) for n in range(1, 11)]
        errors = [0.02 * sum(row[k] for row in exact) / len(exact) for k in range(len(MEASURES))]
        for n, row in enumerate(exact, start=1):
            values = [v + e * noise.gauss(0, 1) for v, e in zip(row, errors)]
            out.writerow([n, 10, *(f"{v:.6g}" for v in values)])


def main():
    import numpy as np
    import scipy
    from scipy.optimize import least_squares

    with open(DATA) as file:
        rows = list(csv.DictReader(file))
    users = [int(row["$users"]) for row in rows]
    measured = np.array([[float(row[m]) for m in MEASURES] for row in rows])

    def predicted(x):
        return np.array([mva(list(x), n) for n in users])

    def jacobian(x):
        columns = []
        for j in range(len(x)):
            moved = np.array(x, dtype=complex)
            moved[j] += 1e-30j
            columns.append(predicted(moved).imag / 1e-30)
        return np.stack(columns, axis=-1)

    def fit(deviations, start):
        residuals = lambda x: ((measured - predicted(x)) / deviations).ravel()
        slopes = lambda x: (-jacobian(x) / deviations[None, :, None]).reshape(-1, len(x))
        return least_squares(residuals, start, jac=slopes, method="lm", xtol=1e-15, ftol=1e-15, gtol=1e-15)

    def show(name, result):
        dof = len(result.fun) - len(result.x)
        squares = float(result.fun @ result.fun)
        covariance = np.linalg.inv(result.jac.T @ result.jac) * squares / dof
        print(f"{name}: estimates", *(f"{v:.12e}" for v in result.x))
        print(f"{name}: standard errors", *(f"{v:.12e}" for v in np.sqrt(np.diag(covariance))))
        print(f"{name}: sum of squares {squares:.12e}, degrees of freedom {dof}")

    print("scipy", scipy.__version__)
    plain = fit(np.ones(len(MEASURES)), [1.0, 1.0, 1.0])
    show("plain", plain)
    result, deviations = plain, np.ones(len(MEASURES))
    for _ in range(500):
        new = np.sqrt(((measured - predicted(result.x)) ** 2).mean(axis=0))
        change = np.abs(new / deviations - 1).max()
        deviations = new
        result = fit(deviations, result.x)
        if change < 1e-13:
            break
    show("auto", result)

    # The variances' own uncertainty: Q = 1 - J (J'J)^-1 J', information of the variances tr(Q_kl Q_lk) / 2.
    jac, n = result.jac, len(MEASURES)
    known = np.linalg.inv(jac.T @ jac)
    scale = float(result.fun @ result.fun) / (len(result.fun) - len(result.x))
    left = np.eye(len(result.fun)) - jac @ known @ jac.T
    own = [np.arange(len(result.fun)) % n == k for k in range(n)]
    spread = np.linalg.inv([[(left[np.ix_(a, b)] ** 2).sum() / 2 for b in own] for a in own])
    told = [jac[a].T @ jac[a] for a in own]
    among = sum(spread[k, l] * ((told[k] if k == l else 0) - told[k] @ known @ told[l]) for k in range(n) for l in range(n))
    covariance = scale * (known + 2 * known @ among @ known)
    parts = [np.diag(known @ t @ known) for t in told]
    dof = [2 * known[j, j] ** 2 / (np.array([p[j] for p in parts]) @ spread @ [p[j] for p in parts]) for j in range(3)]
    print("auto: standard errors by Kenward and Roger", *(f"{v:.12e}" for v in np.sqrt(np.diag(covariance))))
    print("auto: their degrees of freedom", *(f"{v:.12e}" for v in dof))


if __name__ == "__main__":
    if "--write" in sys.argv:
        write()
    else:
        in_environment()
        main()
