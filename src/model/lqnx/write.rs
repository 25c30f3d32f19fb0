//! A model to XML: the model itself, its hints, processors and groups.

use std::{
    collections::HashMap,
    fmt::{self, Write as _},
};

use super::{results::ResultElements, write_task::write_task};
use crate::model::{
    Group, Histogram, HistogramRequest, Model, Number, Observation, Observed, Processor, ProcessorScheduling, Task, order::TasksByPlace,
};

/// Writes a whole document.
pub(super) fn write_model(model: &Model, results: Option<&ResultElements>) -> String {
    let ordered = model.clone().in_file_order();
    let mut out = Writer::new(&ordered, results);
    out.text.push_str("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    out.open("lqn-model").attribute("name", &ordered.name).optional("description", &ordered.description);
    out.attribute("xmlns:xsi", "http://www.w3.org/2001/XMLSchema-instance").attribute("xsi:noNamespaceSchemaLocation", "lqn.xsd");
    if !ordered.parameters.is_empty() {
        let lines: String = ordered.parameters.iter().map(|p| format!("{p}\n")).collect();
        out.text_element("parameters", &format!("\n{lines}"));
    }
    write_solver_params(&mut out, &ordered);
    let tasks = TasksByPlace::new(&ordered);
    ordered.processors.iter().for_each(|p| write_processor(&mut out, p, &tasks));
    for part in &ordered.opaque {
        if part.element == "lqx" {
            out.text_element(&part.element, &part.text);
        } else {
            out.text_element(&part.element, &format!("\n{}\n", part.text));
        }
    }
    out.close("lqn-model");
    out.text
}

fn write_solver_params(out: &mut Writer<'_>, model: &Model) {
    let params = &model.solver_params;
    out.open("solver-params").attribute("comment", &params.comment);
    out.optional_number("conv_val", params.conv_val.as_ref()).optional_number("it_limit", params.it_limit.as_ref());
    out.optional_number("underrelax_coeff", params.underrelax_coeff.as_ref());
    out.optional_number("print_int", params.print_int.as_ref());
    out.observations(&Observed::Solution);
    for pragma in &params.pragmas {
        out.open("pragma").attribute("param", &pragma.param).attribute("value", &pragma.value).close("pragma");
    }
    out.close("solver-params");
}

fn write_processor(out: &mut Writer<'_>, processor: &Processor, tasks: &TasksByPlace<'_>) {
    out.open("processor").attribute("name", &processor.name).attribute("scheduling", scheduling(processor.scheduling));
    out.number("multiplicity", &processor.multiplicity, 1.0).number("replication", &processor.replication, 1.0);
    out.number("speed-factor", &processor.speed_factor, 1.0).number("quantum", &processor.quantum, 0.0);
    out.observations(&Observed::Processor(processor.name.clone()));
    for group in &processor.groups {
        write_group(out, group, tasks.of(&processor.name, Some(&group.name)));
    }
    tasks.of(&processor.name, None).iter().for_each(|t| write_task(out, t));
    out.close("processor");
}

fn write_group(out: &mut Writer<'_>, group: &Group, tasks: &[&Task]) {
    out.open("group").attribute("name", &group.name).attribute("share", &group.share);
    if group.cap {
        out.attribute("cap", "true");
    }
    out.observations(&Observed::Group(group.name.clone()));
    tasks.iter().for_each(|t| write_task(out, t));
    out.close("group");
}

fn scheduling(scheduling: ProcessorScheduling) -> &'static str {
    match scheduling {
        ProcessorScheduling::Fcfs => "fcfs",
        ProcessorScheduling::Inf => "inf",
        ProcessorScheduling::Hol => "hol",
        ProcessorScheduling::Pri => "pri",
        ProcessorScheduling::Ps => "ps",
        ProcessorScheduling::Cfs => "cfs",
        ProcessorScheduling::Rand => "rand",
        ProcessorScheduling::Lcfs => "lcfs",
        ProcessorScheduling::Rr => "rr",
    }
}

/// Elements with indentation, and what is to be observed by element.
pub(super) struct Writer<'a> {
    pub(super) text: String,
    results: Option<&'a ResultElements>,
    depth: usize,
    /// Whether the last tag still takes attributes.
    in_tag: bool,
    observations: HashMap<&'a Observed, Vec<&'a Observation>>,
    histograms: HashMap<&'a Observed, Vec<&'a Histogram>>,
}

impl<'a> Writer<'a> {
    fn new(model: &'a Model, results: Option<&'a ResultElements>) -> Self {
        let mut observations: HashMap<_, Vec<_>> = HashMap::new();
        model.observations.iter().for_each(|o| observations.entry(&o.of).or_default().push(o));
        let mut histograms: HashMap<_, Vec<_>> = HashMap::new();
        model.histograms.iter().for_each(|h| histograms.entry(&h.of).or_default().push(h));
        Self { text: String::new(), results, depth: 0, in_tag: false, observations, histograms }
    }

    /// Starts an element; attributes may follow.
    pub(super) fn open(&mut self, name: &str) -> &mut Self {
        self.end_tag();
        self.indent();
        self.text.push('<');
        self.text.push_str(name);
        self.depth += 1;
        self.in_tag = true;
        self
    }

    /// Ends the element that was opened last.
    pub(super) fn close(&mut self, name: &str) {
        self.depth -= 1;
        if self.in_tag {
            self.text.push_str("/>\n");
            self.in_tag = false;
        } else {
            self.indent();
            self.text.push_str("</");
            self.text.push_str(name);
            self.text.push_str(">\n");
        }
    }

    /// An attribute of the element that was opened last.
    pub(super) fn attribute(&mut self, name: &str, value: impl fmt::Display) -> &mut Self {
        let _ = write!(self.text, " {name}=\"");
        let _ = write!(Escaped { out: &mut self.text, in_attribute: true }, "{value}");
        self.text.push('"');
        self
    }

    fn optional(&mut self, name: &str, value: &str) -> &mut Self {
        if value.is_empty() { self } else { self.attribute(name, value) }
    }

    /// A number as an attribute, left out where it is the default.
    pub(super) fn number(&mut self, name: &str, value: &Number, default: f64) -> &mut Self {
        if value.is(default) { self } else { self.attribute(name, value) }
    }

    /// A number as an attribute, where there is one.
    pub(super) fn optional_number(&mut self, name: &str, value: Option<&Number>) -> &mut Self {
        match value {
            Some(value) => self.attribute(name, value),
            None => self,
        }
    }

    fn text_element(&mut self, name: &str, text: &str) {
        self.open(name);
        self.in_tag = false;
        self.text.push('>');
        let _ = Escaped { out: &mut self.text, in_attribute: false }.write_str(text);
        self.depth -= 1;
        let _ = writeln!(self.text, "</{name}>");
    }

    /// What is to be observed of an element, and what its results are.
    pub(super) fn observations(&mut self, of: &Observed) {
        if let Some(results) = self.results {
            results.write(of, self);
        }
        for observation in self.observations.get(of).cloned().unwrap_or_default() {
            self.open("result-observe").attribute(&observation.measure, format_args!("${}", observation.variable));
            if let Some(half_width) = &observation.half_width {
                let element = if half_width.level == 99 { "result-conf-99" } else { "result-conf-95" };
                self.open(element).attribute(&observation.measure, format_args!("${}", half_width.variable)).close(element);
            }
            self.close("result-observe");
        }
    }

    /// The histograms asked for of an element that stand apart.
    pub(super) fn histograms(&mut self, of: &Observed) {
        for histogram in self.histograms.get(of).cloned().unwrap_or_default() {
            self.histogram(&histogram.request, of, if let Observed::Phase { phase, .. } = of { Some(*phase) } else { None });
        }
    }

    /// One histogram with its bins, where they are known; of a phase if it stands on its entry.
    pub(super) fn histogram(&mut self, request: &HistogramRequest, of: &Observed, phase: Option<u8>) {
        self.open("service-time-distribution");
        if let Some(phase) = phase {
            self.attribute("phase", phase);
        }
        self.attribute("min", request.min).attribute("max", request.max).attribute("number-bins", request.bins);
        if let Some(results) = self.results {
            results.write_bins(of, request, self);
        }
        self.close("service-time-distribution");
    }

    fn end_tag(&mut self) {
        if self.in_tag {
            self.text.push_str(">\n");
            self.in_tag = false;
        }
    }

    fn indent(&mut self) {
        (0..self.depth).for_each(|_| self.text.push_str("  "));
    }
}

/// Escapes what is written through it.
struct Escaped<'a> {
    out: &'a mut String,
    in_attribute: bool,
}

impl fmt::Write for Escaped<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for c in text.chars() {
            match c {
                '&' => self.out.push_str("&amp;"),
                '<' => self.out.push_str("&lt;"),
                '>' => self.out.push_str("&gt;"),
                '"' if self.in_attribute => self.out.push_str("&quot;"),
                '\r' => self.out.push_str("&#13;"),
                '\n' if self.in_attribute => self.out.push_str("&#10;"),
                '\t' if self.in_attribute => self.out.push_str("&#9;"),
                c => self.out.push(c),
            }
        }
        Ok(())
    }
}
