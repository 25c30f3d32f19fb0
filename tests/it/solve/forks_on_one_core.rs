//! Customers whose requests fork into branches that one processor serves in order of arrival, beside the Markov chain or our simulator at .2 %.

use layerfit::{
    model::{Bindings, lqn_text},
    solve::{SolveOptions, Solver, solve},
};

use super::practice::assert_near;

/// How long a request takes that one of `customers` makes after thinking 1 in the mean: .01, then two branches of such work and calls, and .01. Customers make a
/// geometric number of requests, of 1 in the mean, one after the other.
fn response(customers: u32, work: f64, calls: &str, tasks: &str, entries: &str) -> f64 {
    let text = format!(
        "P 0 p UU i p MM f -1
         T 0 t users r uu -1 UU z 1 m {customers} t gate i aa -1 MM {tasks} -1
         E 0 s uu 0 -1 y uu aa 1 -1 A aa in {entries} -1
         A gate s in 0.01 s b1 {work} s b2 {work} {calls} s out 0.01 : in -> b1 & b2; b1 & b2 -> out; out[aa] -1"
    );
    let model = lqn_text::parse(&text).unwrap_or_else(|error| panic!("{error}"));
    let options = SolveOptions { solver: Solver::Layered, ..SolveOptions::default() };
    let found = solve(&model, &Bindings::new(), &options).unwrap();
    assert!(found.converged, "{tasks} {entries}: {:?}", found.diagnostics);
    found.entries["uu"].service_times[0].unwrap()
}

/// Alone the branches take turns.
#[test]
fn a_lone_customer_waits_for_both_branches() {
    assert_near(response(1, 0.03, "", "", ""), 0.08, 0.003);
}

/// Branches that call tasks on the same processor meet there slice by slice, and wait for others together: 13 and 26 % long while what each of them waits was its own.
#[test]
fn branches_that_meet_wait_for_others_together() {
    let once = "y b1 xx 1 f b1 1 y b2 yy 1 f b2 1";
    let served = response(8, 0.01, once, "t srv i xx yy -1 MM", "s xx 0.02 -1 s yy 0.02 -1");
    assert_near(served, 0.14367, 0.11);
    let through = response(
        8,
        0.001,
        once,
        "t srv i xx yy -1 MM t db i zz -1 MM",
        "s xx 0.003 -1 y xx zz 4 -1 s yy 0.003 -1 y yy zz 4 -1 s zz 0.006 -1",
    );
    assert_near(through, 0.13468, 0.15);
}
