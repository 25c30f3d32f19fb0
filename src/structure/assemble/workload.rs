//! Workloads that are concluded, in words; of what is given nothing is said.

use super::{Assembly, Customers};
use crate::structure::interactions::{Evidence, OpenAtOnce, Workload};

impl Assembly<'_> {
    /// Says that arrivals from outside are concluded, and that nobody thinks between them.
    pub(super) fn note_open(&mut self, customers: &Customers, name: &str, rate: f64) {
        if !self.parts.options.think_time.is(0.0) && customers.class.is_none() {
            let message = "a think time was asked for, but requests arrive from outside, whatever the replies: it has no effect without a number of \
                           customers";
            self.out.diagnostics.add("think_time_without_customers", message, || name.to_owned());
        }
        // Those beside sessions are told with these.
        let (Some(evidence), None) = (customers.seen.and_then(|seen| seen.evidence), &customers.class) else { return };
        let how = if matches!(evidence, Evidence::Clock(_)) { ", as regular as by a clock" } else { "" };
        let message = "requests arrive from outside, at the rate seen: there is no reference task";
        self.out.diagnostics.add("open_workload", message, || format!("{name}: {rate:.6} a second{how}"));
    }

    /// Says that a closed workload is concluded, and from what.
    pub(super) fn note_closed(&mut self, customers: &Customers, name: &str) {
        let is_asked = self.parts.options.customers.is_some() || !self.parts.options.think_time.is(0.0);
        let (Some(Workload::Closed { customers: n, think_time }), false) = (customers.workload, is_asked) else { return };
        if let Some(OpenAtOnce { rate }) = customers.open_at_once {
            let message = "where their number and think time, or a rate, are not given, requests come from as many customers as had one \
                           open at once, who do not think";
            let rate = rate.map_or_else(String::new, |rate| format!(", {rate:.6} requests a second seen"));
            self.out.diagnostics.add("closed_workload", message, || format!("{name}: {n} customers{rate}"));
        }
        let Some(seen) = customers.seen else { return };
        let by = match seen.evidence {
            Some(Evidence::Sessions(sessions)) => format!("by {sessions} sessions"),
            Some(Evidence::Steady(part)) => {
                format!("the number of requests under way varies by {part:.2} of what that of random arrivals does")
            }
            Some(Evidence::Clock(_) | Evidence::Arrivals) | None => return,
        };
        let message = "requests come from customers, who think between a reply and their next request: if they arrive whatever the replies, \
                       a resource file is to say the rate";
        let example =
            || format!("{name}: population {}, think time {think_time:.6} s, {:.6} requests a second: {by}", n.round(), seen.rate);
        self.out.diagnostics.add("closed_workload", message, example);
    }
}
