//! Short calls and long ones of the same pool. Responses are those of the exact chain.

use layerfit::model::Task;

use super::{
    build::*,
    practice::{assert_near, layered},
};

/// So many customers who think so long, with short calls in such a share of all.
fn users(name: &str, (number, think, short): (u32, f64, f64)) -> Task {
    customers(name, number, think, work(&name.to_lowercase(), 0.0).calls_about("a", short).calls_about("b", 1.0 - short)).on("delay")
}

/// While a long call holds a thread the short ones go on at the others: without that the solver was 6, 2, 3.5 and 8 % slow.
#[test]
fn long_calls_leave_the_other_threads_to_short_ones() {
    for (customers, threads, long, response) in [
        ((10, 1.0, 0.8), 2.0, 3.0, 2.8258),
        ((12, 4.0, 0.8), 3.0, 3.0, 0.9585),
        ((12, 2.0, 0.8), 4.0, 4.0, 1.3975),
        ((8, 1.0, 0.9), 2.0, 6.0, 2.2378),
    ] {
        let pool = server("pool", [serves("a", 0.2), serves("b", long)]).times(threads).on("delay");
        let found = layered(&model([], [users("U", customers), pool]));
        assert_near(f64::from(customers.0) / found.tasks["U"].throughput - customers.1, response, 0.003);
    }
}

/// Two classes that have both: what differs between them, and what differs within each. They were 6, .7 and 2 % slow.
#[test]
fn classes_with_calls_of_both_lengths_wait_for_those_of_both() {
    for (classes, threads, long, responses, tolerance) in [
        ([(4, 2.5, 0.93), (5, 5.0, 0.88)], 2.0, 4.5, [0.8103, 1.0895], 0.012),
        ([(5, 4.0, 0.8), (4, 3.0, 0.6)], 3.0, 2.0, [0.6395, 0.9856], 0.003),
        ([(6, 1.0, 0.7), (3, 8.0, 0.5)], 4.0, 3.0, [1.2451, 1.9406], 0.015),
    ] {
        let pool = server("pool", [serves("a", 0.2), serves("b", long)]).times(threads).on("delay");
        let found = layered(&model([], [users("U", classes[0]), users("V", classes[1]), pool]));
        for (name, (customers, think, _), response) in [("U", classes[0], responses[0]), ("V", classes[1], responses[1])] {
            assert_near(f64::from(customers) / found.tasks[name].throughput - think, response, tolerance);
        }
    }
}
