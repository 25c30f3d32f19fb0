//! Numbers of other solvers.

use layerfit::solve::mva::{Class, Network, Station, solve_exact};

/// Digits to which the peer's numbers are given.
const TOLERANCE: f64 = 1e-12;

/// LINE's Python package (line-solver 3.0.8.0), `pfqn_mva`, by `tests/peers/line_mva.py`.
#[test]
fn exact_mva_agrees_with_line() {
    let network = Network {
        classes: vec![Class { population: 20, think_time: 5.0 }; 3],
        stations: vec![Station::Servers(1); 8],
        demands: (0..3).map(|c| (0..8).map(|k| 0.1 + 0.01 * f64::from(c + k)).collect()).collect(),
    };
    let solution = solve_exact(&network).unwrap();
    let near = |found: f64, expected: f64| assert!((found - expected).abs() <= TOLERANCE * expected, "{found}, LINE has {expected}");
    for (found, expected) in solution.throughputs.iter().zip([1.823_643_461_473_15, 1.758_965_956_605_09, 1.698_752_506_840_88]) {
        near(*found, expected);
    }
    for (class, expected) in [3.423_556_226_029_98, 3.495_074_711_836_85, 3.561_707_279_091_66].into_iter().enumerate() {
        near(solution.queue_lengths[class][7], expected);
    }
}
