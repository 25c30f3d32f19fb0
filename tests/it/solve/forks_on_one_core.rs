//! Customers whose requests fork into branches that one processor serves in order of arrival, beside our simulator at .2 %.

use layerfit::model::lqn_text;

use super::practice::{assert_near, layered};

/// How long a request takes that one of eight customers makes after thinking 1 in the mean: .01, then two branches of such work, either of which calls `xx` or `yy` once, and
/// .01. Customers make a geometric number of requests, of 1 in the mean, one after the other.
fn response(work: f64, tasks: &str, entries: &str) -> f64 {
    let text = format!(
        "P 0 p UU i p MM f -1
         T 0 t users r uu -1 UU z 1 m 8 t gate i aa -1 MM t srv i xx yy -1 MM {tasks} -1
         E 0 s uu 0 -1 y uu aa 1 -1 A aa in {entries} -1
         A gate s in 0.01 s b1 {work} y b1 xx 1 f b1 1 s b2 {work} y b2 yy 1 f b2 1 s out 0.01 : in -> b1 & b2; b1 & b2 -> out; out[aa] -1"
    );
    let found = layered(&lqn_text::parse(&text).unwrap_or_else(|error| panic!("{error}")));
    found.entries["uu"].service_times[0].unwrap()
}

/// Branches that call tasks on the same processor meet there slice by slice, and wait for others together: 13 and 26 % long while what each of them waits was its own.
#[test]
fn branches_that_meet_wait_for_others_together() {
    assert_near(response(0.01, "", "s xx 0.02 -1 s yy 0.02 -1"), 0.14367, 0.11);
    let through = response(0.001, "t db i zz -1 MM", "s xx 0.003 -1 y xx zz 4 -1 s yy 0.003 -1 y yy zz 4 -1 s zz 0.006 -1");
    assert_near(through, 0.13468, 0.15);
}
