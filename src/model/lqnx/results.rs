//! Results in a file: the `result-*` element that stands in every element of the model.
//!
//! | element | stands in | attributes |
//! |---|---|---|
//! | `result-general` | `solver-params` | `valid`, `conv-val`, `iterations`, … |
//! | `result-processor`, `result-group`, `result-task`, `result-entry` | the element | `utilization`, `throughput`, … |
//! | `result-activity` | phase or activity | `service-time`, `proc-waiting`, … |
//! | `result-call` | call or forwarding | `waiting`, `loss-probability`, … |
//! | `result-join-delay` | `pre-AND` | `join-waiting`, `join-variance` |
//! | `underflow-bin`, `histogram-bin`, `overflow-bin` | `service-time-distribution` | `begin`, `end`, `prob`, `conf-95`, `conf-99` |
//!
//! Half-widths of confidence intervals stand inside as `result-conf-95` and `result-conf-99`, under the same names.

use std::collections::HashMap;

use super::write::Writer;
use crate::model::{HistogramRequest, Observed};

/// The results of one element.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ResultElement {
    /// Attributes and their values; those that are not finite are left out.
    pub values: Vec<(&'static str, f64)>,
    /// Half-widths at 95 %, by the same names; empty for none.
    pub half_widths_95: Vec<(&'static str, f64)>,
    /// Half-widths at 99 %, by the same names; empty for none.
    pub half_widths_99: Vec<(&'static str, f64)>,
}

/// A bin of a histogram.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ResultBin {
    /// Lower end, which belongs to the bin.
    pub begin: f64,
    /// Upper end, which does not; infinite for the bin of all longer times.
    pub end: f64,
    /// Part of the times that fall into the bin.
    pub probability: f64,
    /// Half-width of the probability at 95 %.
    pub half_width_95: Option<f64>,
    /// Half-width of the probability at 99 %.
    pub half_width_99: Option<f64>,
}

/// The results of a solution.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ResultElements {
    /// Attributes of `result-general`: how the solution was got.
    pub general: Vec<(&'static str, String)>,
    /// Results by element; [`Observed::Solution`] has none here.
    pub elements: HashMap<Observed, ResultElement>,
    /// Bins of the histograms asked for of an element, each from the one of all shorter to the one of all longer times.
    pub histograms: HashMap<Observed, Vec<Vec<ResultBin>>>,
}

impl ResultElements {
    /// Writes the results of an element, if there are any.
    pub(super) fn write(&self, of: &Observed, out: &mut Writer<'_>) {
        let name = element_name(of);
        if *of == Observed::Solution {
            out.open(name);
            self.general.iter().for_each(|(attribute, value)| {
                out.attribute(attribute, value);
            });
            out.close(name);
        } else if let Some(element) = self.elements.get(of) {
            out.open(name);
            write_values(out, &element.values);
            for (level, half_widths) in [("result-conf-95", &element.half_widths_95), ("result-conf-99", &element.half_widths_99)] {
                if !half_widths.is_empty() {
                    out.open(level);
                    write_values(out, half_widths);
                    out.close(level);
                }
            }
            out.close(name);
        }
    }

    /// Writes the bins of one histogram of an element, if they are known. One without times below its ends has no bin for them.
    pub(super) fn write_bins(&self, of: &Observed, request: &HistogramRequest, out: &mut Writer<'_>) {
        let is_it = |bins: &&Vec<ResultBin>| {
            let ends = bins.get(1).zip(bins.last());
            let n = usize::try_from(request.bins).ok().and_then(|n| n.checked_add(2));
            Some(bins.len()) == n && ends.is_some_and(|(first, last)| (first.begin, last.begin) == (request.min, request.max))
        };
        let Some(bins) = self.histograms.get(of).and_then(|all| all.iter().find(is_it)) else { return };
        for (i, bin) in bins.iter().enumerate().filter(|(_, bin)| bin.begin < bin.end) {
            let name = match i {
                0 => "underflow-bin",
                i if i + 1 == bins.len() => "overflow-bin",
                _ => "histogram-bin",
            };
            out.open(name).attribute("begin", number(bin.begin));
            out.attribute("end", if bin.end.is_finite() { number(bin.end) } else { "INF".to_owned() });
            out.attribute("prob", number(bin.probability));
            for (level, half_width) in [("conf-95", bin.half_width_95), ("conf-99", bin.half_width_99)] {
                if let Some(half_width) = half_width.filter(|h| h.is_finite()) {
                    out.attribute(level, number(half_width));
                }
            }
            out.close(name);
        }
    }
}

fn element_name(of: &Observed) -> &'static str {
    match of {
        Observed::Solution => "result-general",
        Observed::Processor(_) => "result-processor",
        Observed::Group(_) => "result-group",
        Observed::Task(_) => "result-task",
        Observed::Entry(_) => "result-entry",
        Observed::Phase { .. } | Observed::Activity { .. } => "result-activity",
        Observed::PhaseCall { .. } | Observed::ActivityCall { .. } | Observed::Forwarding { .. } => "result-call",
        Observed::Join { .. } => "result-join-delay",
    }
}

fn write_values(out: &mut Writer<'_>, values: &[(&'static str, f64)]) {
    for (attribute, value) in values.iter().filter(|(_, value)| value.is_finite()) {
        out.attribute(attribute, number(*value));
    }
}

/// All digits of a number, with an exponent where it is very small or large.
fn number(value: f64) -> String {
    if value == 0.0 || (1e-5..1e15).contains(&value.abs()) { value.to_string() } else { format!("{value:e}") }
}
