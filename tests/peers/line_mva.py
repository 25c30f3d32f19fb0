#!/usr/bin/env python3
"""Times exact mean value analysis in LINE's Python package (line-solver) on the network of benches/solve.rs.

    python3 tests/peers/line_mva.py

Three classes of 20 customers who think for 5, eight single servers, demand of class c at station k 0.1 + 0.01 (c + k). Prints the
shortest of five times of `pfqn_mva`, the recursion that benches/solve.rs times as "exact MVA", and the throughputs that
tests/it/solve/peers.rs holds. The script makes its own virtual environment (.venv at the top of the repository) and
installs line-solver there.
"""

import pathlib
import subprocess
import sys
import time

VENV = pathlib.Path(__file__).resolve().parent.parent.parent / ".venv"


def in_environment():
    try:
        import line_solver  # noqa: F401
    except ImportError:
        python = VENV / "bin" / "python"
        if not python.exists():
            subprocess.check_call([sys.executable, "-m", "venv", str(VENV)])
        subprocess.check_call([str(python), "-m", "pip", "install", "--quiet", "line-solver==3.0.8.0"])
        sys.exit(subprocess.call([str(python), __file__, *sys.argv[1:]]))


def main():
    in_environment()
    import numpy
    from line_solver.api.pfqn.mva import pfqn_mva

    demands = numpy.array([[0.1 + 0.01 * (c + k) for c in range(3)] for k in range(8)])
    customers, think = numpy.array([20, 20, 20]), numpy.array([5.0, 5.0, 5.0])
    times = []
    for _ in range(5):
        start = time.perf_counter()
        result = pfqn_mva(demands, customers, think)
        times.append(time.perf_counter() - start)
    print(f"pfqn_mva: {1000 * min(times):.1f} ms")
    print("throughputs:", *(f"{x:.15g}" for x in numpy.ravel(result[0])))
    print("queue at the last station:", *(f"{x:.15g}" for x in result[2][-1]))


main()
