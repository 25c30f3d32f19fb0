//! Customers whose requests fork into branches that one processor serves in order of arrival, beside our simulator at .2 %.

use layerfit::{
    model::{Bindings, Model, TaskScheduling, lqn_text},
    solve::{MarkovOptions, Solution, solve_markov},
};

use super::practice::{assert_near, layered};

fn parsed(text: &str) -> Model {
    lqn_text::parse(text).unwrap_or_else(|error| panic!("{error}"))
}

fn exact(model: &Model) -> Solution {
    solve_markov(model, &Bindings::new(), &MarkovOptions::default()).unwrap()
}

fn held(found: &Solution, entry: &str) -> f64 {
    found.entries[entry].service_times[0].unwrap()
}

/// How long a request takes that one of eight customers makes after thinking 1 in the mean: .01, then two branches of such work, either of which calls `xx` or `yy` once, and
/// .01. Customers make a geometric number of requests, of 1 in the mean, one after the other.
fn response(work: f64, tasks: &str, entries: &str) -> f64 {
    let text = format!(
        "P 0 p UU i p MM f -1
         T 0 t users r uu -1 UU z 1 m 8 t gate i aa -1 MM t srv i xx yy -1 MM {tasks} -1
         E 0 s uu 0 -1 y uu aa 1 -1 A aa in {entries} -1
         A gate s in 0.01 s b1 {work} y b1 xx 1 f b1 1 s b2 {work} y b2 yy 1 f b2 1 s out 0.01 : in -> b1 & b2; b1 & b2 -> out; out[aa] -1"
    );
    let found = layered(&parsed(&text));
    found.entries["uu"].service_times[0].unwrap()
}

/// Branches that call tasks on the same processor meet there slice by slice, and wait for others together: 13 and 26 % long while what each of them waits was its own.
#[test]
fn branches_that_meet_wait_for_others_together() {
    assert_near(response(0.01, "", "s xx 0.02 -1 s yy 0.02 -1"), 0.14367, 0.05);
    let through = response(0.001, "t db i zz -1 MM", "s xx 0.003 -1 y xx zz 4 -1 s yy 0.003 -1 y yy zz 4 -1 s zz 0.006 -1");
    assert_near(through, 0.13468, 0.06);
}

/// Customers who begin a fork after thinking so long, `branches` of work .05 that each call a task on the same core for so long, .1 before the fork and .1 after the join.
fn calling((customers, think): (u32, f64), called: &[f64], cores: u32) -> Model {
    let names: Vec<usize> = (0..called.len()).collect();
    let all = |of: &dyn Fn(usize) -> String, between: &str| names.iter().map(|&i| of(i)).collect::<Vec<_>>().join(between);
    let tasks = all(&|i| format!("t s{i} i h{i} -1 MM"), " ");
    let entries = all(&|i| format!("s h{i} {} -1", called[i]), " ");
    let branches = all(&|i| format!("s b{i} 0.05 y b{i} h{i} 1"), " ");
    let both = all(&|i| format!("b{i}"), " & ");
    parsed(&format!(
        "P 0 p UU i p MM f m {cores} -1 T 0 t users r uu -1 UU z {think} m {customers} t gate i aa -1 MM {tasks} -1
         E 0 s uu 0 -1 y uu aa 1 -1 A aa in {entries} -1
         A gate s in 0.1 {branches} s out 0.1 : in -> {both}; {both} -> out; out[aa] -1"
    ))
}

/// Slices that begin where the last one of their request ended find who was ahead of it a slice further on, and who came meanwhile; while they found what there is at any time these were 7
/// to 15 % slow where nobody thinks, did not settle in part, and responses were 3 to 12 % long where customers do.
#[test]
fn what_comes_back_at_once_finds_who_was_ahead_of_it() {
    let (alike, unlike) = ([0.3, 0.3], [0.1, 0.5]);
    for (customers, called, cores, error) in [
        ((2, 0.0), &alike[..], 1, 1e-3),
        ((2, 0.0), &unlike[..], 1, 1e-3),
        ((2, 2.0), &alike[..], 1, 0.02),
        ((2, 2.0), &unlike[..], 1, 0.02),
        ((2, 0.0), &[0.3, 0.3, 0.3][..], 1, 1e-3),
        ((2, 0.0), &alike[..], 2, 0.085),
        ((2, 2.0), &alike[..], 2, 0.03),
    ] {
        let model = calling(customers, called, cores);
        assert_near(held(&layered(&model), "uu"), held(&exact(&model), "uu"), error);
    }
}

/// Sixteen branches, by simulation to .2 %: slices of the last ones are taken when all others have ended, and of a random number a sixteenth is. 28 % long while a half was.
#[test]
fn of_many_branches_most_slices_are_taken_beside_another() {
    let found = layered(&calling((2, 5.0), &[0.1; 16], 1));
    assert_near(held(&found, "uu"), 3.5426, 0.065);
}

/// A thread of a pool of two stands for the customers that it works for. Its join is short here, 8 % (7 before its slices followed each other).
#[test]
fn threads_come_back_at_once_as_customers_do() {
    let mut model = calling((3, 1.0), &[0.3, 0.2], 1);
    model.tasks[1].scheduling = TaskScheduling::Fcfs;
    model.tasks[1].multiplicity = 2.0.into();
    assert_near(held(&layered(&model), "uu"), held(&exact(&model), "uu"), 0.09);
}

/// Requests from outside, to a core at .63, by simulation to .1 %: 9 % long while slices found what there is at any time.
#[test]
fn requests_from_outside_come_back_at_once() {
    let found = layered(&parsed(
        "P 0 p MM f -1 T 0 t gate i aa -1 MM t s0 i h0 -1 MM t s1 i h1 -1 MM -1
         E 0 A aa in a aa 0.9 s h0 0.3 -1 s h1 0.2 -1 -1
         A gate s in 0.05 s b0 0.05 y b0 h0 1 s b1 0.05 y b1 h1 1 s out 0.05 : in -> b0 & b1; b0 & b1 -> out; out[aa] -1",
    ));
    assert_near(held(&found, "aa"), 2.229, 0.015);
}

/// One customer of a class comes back soon, two of another think: each class has a graph of its own, and results are of the graph that the model has.
#[test]
fn classes_are_told_apart_through_a_fork() {
    let model = parsed(
        "P 0 p UU i p MM f -1 T 0 t one r oo -1 UU z 0.3 m 1 t two r ww -1 UU z 4 m 2 t gate i aa -1 MM t srv i xx yy -1 MM -1
         E 0 s oo 0 -1 y oo aa 1 -1 s ww 0 -1 y ww aa 1 -1 A aa in s xx 0.2 -1 s yy 0.3 -1 -1
         A gate s in 0.05 s b1 0.1 y b1 xx 1 s b2 0.05 y b2 yy 1 s out 0.05 : in -> b1 & b2; b1 & b2 -> out; out[aa] -1",
    );
    let (found, exact) = (layered(&model), exact(&model));
    for class in ["oo", "ww"] {
        assert_near(held(&found, class), held(&exact, class), 0.06);
    }
    let activities: Vec<&String> = found.activities["gate"].keys().collect();
    assert_eq!(activities, ["in", "b1", "b2", "out"]);
    for (name, it) in &found.activities["gate"] {
        let exact = &exact.activities["gate"][name];
        assert_near(it.throughput, exact.throughput, 0.02);
        assert_near(it.service_time.unwrap(), exact.service_time.unwrap(), 0.08);
    }
    let [join] = &found.joins[..] else { panic!("{:?}", found.joins) };
    assert_eq!(join.activities, ["b1", "b2"]);
    assert_eq!(found.calls.iter().filter(|call| call.from == "aa").count(), 2, "{:?}", found.calls);
}
