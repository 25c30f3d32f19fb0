//! The profile as text: a table, and the calling-context tree drawn with bars.

use std::fmt::Write as _;

use super::{ContextTree, Level, LevelSpread, ProfileReport, SampleSummary};

/// Width of the longest bar, characters.
const BAR_WIDTH: usize = 20;

/// Names up to this many characters are padded to one width.
const LONGEST_NAME: usize = 100;

/// What is drawn of a calling-context tree.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DrawOptions {
    /// The finest level drawn.
    pub level: Level,
    /// Contexts whose total time is a smaller part of all time are left out and counted.
    pub least_share: f64,
    /// Most contexts drawn below one.
    pub most_children: usize,
    /// What becomes of the only context below one, whose observations are the same.
    pub only_children: OnlyChildren,
}

/// What becomes of contexts that say the same as the coarser one above.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnlyChildren {
    /// They are drawn.
    #[default]
    Draw,
    /// They are not, nor what is below them while it is alone.
    Skip,
}

impl Default for DrawOptions {
    fn default() -> Self {
        Self { level: Level::Trace, least_share: 0.001, most_children: 10, only_children: OnlyChildren::default() }
    }
}

/// A time with its unit, four characters of number: `1.25 ms`.
fn time(seconds: f64) -> String {
    let (value, unit) = match seconds.abs() {
        s if s >= 1.0 => (seconds, "s"),
        s if s >= 1e-3 => (seconds * 1e3, "ms"),
        s if s >= 1e-6 => (seconds * 1e6, "µs"),
        s if s > 0.0 => (seconds * 1e9, "ns"),
        _ => (0.0, "s"),
    };
    let digits = match value.abs() {
        v if v >= 100.0 => 0,
        v if v >= 10.0 => 1,
        _ => 2,
    };
    format!("{value:.digits$} {unit}")
}

fn percent(part: f64) -> String {
    format!("{:.2} %", 100.0 * part)
}

fn level_name(level: Level) -> &'static str {
    match level {
        Level::All => "all",
        Level::Operation => "operation",
        Level::Caller => "caller",
        Level::Stack => "stack",
        Level::Trace => "trace",
    }
}

impl ProfileReport {
    /// The report as text: levels, all operations with their leaves, sibling calls.
    pub fn to_text(&self) -> String {
        self.head() + &self.operations_to_text(0.0) + &self.sibling_calls_to_text()
    }

    /// What was observed, and what each level explains of it.
    pub fn head(&self) -> String {
        let Self { n_executions, n_recordings, n_traces, n_kinds_of_trace, n_folded, .. } = self;
        let folded = if *n_folded > 0 { format!(", {n_folded} executions folded into coarser contexts") } else { String::new() };
        // Elsewhere a trace is a recording, with all that nobody waits for.
        let parts = match n_traces > n_recordings {
            true => format!(", from {n_recordings} recordings: asynchronous parts are traces of their own"),
            false => String::new(),
        };
        let mut text = format!("{n_executions} executions in {n_traces} traces of {n_kinds_of_trace} kinds{parts}{folded}\n\n");
        levels(&mut text, "", &self.levels);
        text
    }

    /// The operations with at least `least_share` of the time of all, with their leaves; the rest is counted.
    pub fn operations_to_text(&self, least_share: f64) -> String {
        let total = |times: &SampleSummary| times.weight * times.mean_s;
        let least = least_share * self.operations.iter().map(|operation| total(&operation.times)).sum::<f64>();
        let mut text = String::new();
        let mut n_left_out = 0;
        for operation in &self.operations {
            if total(&operation.times) < least {
                n_left_out += 1;
                continue;
            }
            let _ = writeln!(text, "\n{}  {}", operation.operation, times(&operation.times));
            if operation.levels.last().is_some_and(|finest| finest.n_contexts > 1) {
                levels(&mut text, "  ", &operation.levels);
            }
            for leaf in operation.leaves.iter().filter(|_| operation.leaves.len() > 1) {
                let more = leaf.n_contexts - leaf.contexts.len().min(1);
                let context = leaf.contexts.first().map_or("", String::as_str);
                let others = if more > 0 { format!(" and {more} more") } else { String::new() };
                let linked = leaf.linked_to.as_ref().map_or_else(String::new, |to| format!("  too few: as {to}"));
                let forced = if leaf.forced { "  unlike ones merged" } else { "" };
                let (share, shown) = (percent(leaf.share), times(&leaf.times));
                let _ = writeln!(text, "  - {} {context}{others}: {share}  {shown}{linked}{forced}", level_name(leaf.level));
            }
        }
        if n_left_out > 0 {
            let _ = writeln!(text, "\n… and {n_left_out} operations with less time");
        }
        text
    }

    /// Calls of one operation by one caller that differ by their order.
    pub fn sibling_calls_to_text(&self) -> String {
        let mut text = String::new();
        for calls in &self.sibling_calls {
            let medians: Vec<String> =
                calls.calls.iter().map(|(nth, n, median)| format!("call {nth} {} (n = {n})", time(*median))).collect();
            let _ = writeln!(text, "\ncalls differ by their order: {} in {}: {}", calls.path, calls.context, medians.join(", "));
        }
        text
    }
}

fn times(times: &SampleSummary) -> String {
    let SampleSummary { n, mean_s, sd_s, cv, median_s, p95_s, .. } = times;
    let (mean, sd, median, p95) = (time(*mean_s), time(*sd_s), time(*median_s), time(*p95_s));
    format!("n = {n}  mean {mean}  sd {sd}  cv {cv:.2}  median {median}  95 % {p95}")
}

fn levels(text: &mut String, indent: &str, levels: &[LevelSpread]) {
    let _ = writeln!(text, "{indent}{:<10} {:>8} {:>10} {:>13} {:>10}", "level", "contexts", "mean sd", "sd reduction", "explained");
    for spread in levels {
        let LevelSpread { level, n_contexts, mean_sd_s, sd_reduction, explained } = spread;
        let (level, sd) = (level_name(*level), time(*mean_sd_s));
        let (reduction, explained) = (percent(*sd_reduction), percent(*explained));
        let _ = writeln!(text, "{indent}{level:<10} {n_contexts:>8} {sd:>10} {reduction:>13} {explained:>10}");
    }
}

/// A line to be drawn: a context, or how many were left out.
enum Line {
    Context(usize),
    LeftOut(usize),
}

impl ContextTree {
    /// The tree as indented lines, each with a bar as long as its part of all time (count × mean), longest first.
    pub fn draw(&self, options: &DrawOptions) -> String {
        let mut lines: Vec<(String, Option<usize>)> = Vec::new();
        let mut next: Vec<(Line, String, &str)> = self.nodes.first().map(|_| (Line::Context(0), String::new(), "")).into_iter().collect();
        while let Some((line, indent, mark)) = next.pop() {
            let index = match line {
                Line::LeftOut(n) => {
                    lines.push((format!("{indent}{mark}… and {n} smaller"), None));
                    continue;
                }
                Line::Context(index) => index,
            };
            lines.push((format!("{indent}{mark}{}", self.nodes[index].name), Some(index)));
            if self.nodes[index].level >= options.level {
                continue;
            }
            let below = match mark {
                "" => indent,
                "└ " => format!("{indent}  "),
                _ => format!("{indent}│ "),
            };
            let children = self.drawn_children(index, options);
            let last = children.len().saturating_sub(1);
            let with_mark = |(at, line)| (line, below.clone(), if at == last { "└ " } else { "├ " });
            next.extend(children.into_iter().enumerate().map(with_mark).collect::<Vec<_>>().into_iter().rev());
        }
        self.with_bars(lines)
    }

    fn drawn_children(&self, index: usize, options: &DrawOptions) -> Vec<Line> {
        let mut at = index;
        let mut children = self.nodes[at].children.clone();
        while let ([only], OnlyChildren::Skip, true) = (children.as_slice(), options.only_children, index > 0) {
            at = *only;
            if self.nodes[at].level >= options.level {
                return Vec::new();
            }
            children = self.nodes[at].children.clone();
        }
        children.sort_by(|a, b| self.time_share(*b).total_cmp(&self.time_share(*a)).then(a.cmp(b)));
        let drawn = children.iter().take(options.most_children).filter(|child| self.time_share(**child) >= options.least_share).count();
        let left_out = (drawn < children.len()).then(|| Line::LeftOut(children.len() - drawn));
        children.truncate(drawn);
        children.into_iter().map(Line::Context).chain(left_out).collect()
    }

    /// The part of all time that was spent in a context.
    pub(super) fn time_share(&self, index: usize) -> f64 {
        let total = |index: usize| self.nodes[index].sample.weight() * self.nodes[index].sample.mean().unwrap_or(0.0);
        let whole = total(0);
        if whole > 0.0 { total(index) / whole } else { 0.0 }
    }

    fn with_bars(&self, lines: Vec<(String, Option<usize>)>) -> String {
        let width = lines.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0).min(LONGEST_NAME);
        let mut text = String::new();
        for (name, index) in lines {
            let Some((index, summary)) = index.and_then(|index| Some((index, self.nodes[index].sample.summary()?))) else {
                let _ = writeln!(text, "{name}");
                continue;
            };
            write_line(&mut text, (&name, width), self.time_share(index), Some(&summary));
            text.push('\n');
        }
        text
    }
}

/// A line of a tree without its end: name, bar, part of all time, times.
pub(super) fn write_line(text: &mut String, (name, width): (&str, usize), share: f64, times: Option<&SampleSummary>) {
    let pad = width.min(LONGEST_NAME).saturating_sub(name.chars().count());
    let _ = write!(text, "{name}{:pad$} {} {:>8}", "", bar(share), percent(share));
    let _ = match times {
        Some(SampleSummary { n, mean_s, sd_s, .. }) => write!(text, "  n = {n}  mean {}  sd {}", time(*mean_s), time(*sd_s)),
        None => write!(text, "  without times"),
    };
}

/// The quantiles of a line of a tree, and its end.
pub(super) fn write_quantiles(text: &mut String, times: Option<&SampleSummary>) {
    let _ = match times {
        Some(SampleSummary { median_s, p95_s, .. }) => writeln!(text, "  median {}  95 % {}", time(*median_s), time(*p95_s)),
        None => writeln!(text),
    };
}

/// A bar of `share` of the full width, to an eighth of a character.
fn bar(share: f64) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the share is clamped to [0, 1]")]
    let eighths = (share.clamp(0.0, 1.0) * (8 * BAR_WIDTH) as f64).round() as usize;
    let drawn = format!("{}{}", "█".repeat(eighths / 8), EIGHTHS[eighths % 8]);
    let pad = BAR_WIDTH.saturating_sub(drawn.chars().count());
    format!("{drawn}{:pad$}", "")
}
