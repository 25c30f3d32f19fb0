//! A fit obeys an order to stop wherever it is: in the search, and in what comes after it.

use std::ops::ControlFlow;

use layerfit::fit::{
    FitError, FitOptions, Problem, fit,
    problem::{Bootstrap, Intervals, Resampling},
};

use super::three_queue::{problem, trials};

/// Fits and says stop at step `last`; the outcome, and the steps that were reported.
fn stopped_at(problem: &Problem, last: usize) -> (Result<(), FitError>, usize) {
    let mut steps = 0;
    let outcome = fit(problem, &FitOptions::default(), &mut |_| {
        steps += 1;
        if steps >= last { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    (outcome.map(|_| ()), steps)
}

#[test]
fn profiles_bootstrap_and_leaving_out_can_be_cancelled() {
    let plain = problem(trials(10.0, 0.01, 80));
    let (done, in_search) = stopped_at(&plain, usize::MAX);
    assert_eq!(done, Ok(()));
    let bootstrap = Bootstrap { n: 400, resampling: Resampling::Residuals, seed: 1 };
    type Ask = fn(&mut Problem, Bootstrap);
    let cases: [(&str, Ask); 3] = [
        ("profiles", |p, _| p.method.intervals = Intervals::Profile),
        ("bootstrap", |p, b| p.method.bootstrap = Some(b)),
        ("leave one out", |p, _| p.method.leave_one_trial_out = true),
    ];
    for (what, ask) in cases {
        let mut asked = plain.clone();
        ask(&mut asked, bootstrap);
        let (done, all) = stopped_at(&asked, usize::MAX);
        assert_eq!(done, Ok(()));
        assert!(all > in_search + 20, "{what}: {all} steps, {in_search} of them in the search");
        let (outcome, steps) = stopped_at(&asked, in_search + 10);
        assert_eq!(outcome, Err(FitError::Cancelled), "{what}");
        // A thread of the bootstrap may have steps on the way.
        assert!(steps < in_search + 200 && steps < all, "{what}: {steps} of {all}");
    }
}
