//! The text of response times and of what a model asks for itself.

use std::fmt::Write;

use super::table::{number, observed, table};
use crate::solve::{AskedTimes, Bin, JoinResult, Quantile, Solution};

/// Appends the response times of entries, the delays of joins, lost requests, and the histograms and limits that the model asks for.
pub(super) fn append(out: &mut String, solution: &Solution) {
    response_times(out, solution);
    open_responses(out, solution);
    joins(out, solution);
    lost_requests(out, solution);
    for (name, entry) in &solution.entries {
        entry.asked_times.iter().for_each(|asked| asked_times(out, &format!("entry {name}"), asked));
    }
    for (task, activities) in &solution.activities {
        for (name, activity) in activities {
            activity.asked_times.iter().for_each(|asked| asked_times(out, &format!("activity {name} of task {task}"), asked));
        }
    }
    for (name, task) in &solution.tasks {
        task.asked_times.iter().for_each(|asked| asked_times(out, &format!("tokens of task {name}"), asked));
    }
    for join in &solution.joins {
        join.asked_times.iter().for_each(|asked| asked_times(out, &format!("join of {}", joined(join)), asked));
    }
}

/// Response times of requests from outside, where a solver that simulates no single ones found them.
fn open_responses(out: &mut String, solution: &Solution) {
    let found = solution.entries.iter().filter(|(_, e)| e.response_time.is_none());
    let found: Vec<_> = found.filter_map(|(name, e)| Some((name, e.open_wait_time?, e.open_wait_time_half_width))).collect();
    if !found.is_empty() {
        out.push('\n');
        let mut rows = vec![["requests from outside to", "response time"].map(str::to_owned).to_vec()];
        rows.extend(found.into_iter().map(|(name, time, half_width)| vec![name.clone(), number(time, half_width)]));
        table(out, &rows);
    }
}

fn response_times(out: &mut String, solution: &Solution) {
    let measured = || solution.entries.iter().filter_map(|(name, e)| Some((name, e.response_time.as_ref()?)));
    let Some((_, first)) = measured().next() else { return };
    let probabilities = first.quantiles.iter().map(|q| format!("{} quantile (bounds)", q.probability));
    let mut rows = vec![["entry", "response time"].into_iter().map(str::to_owned).chain(probabilities).collect::<Vec<_>>()];
    for (name, time) in measured() {
        let mut row = vec![name.clone(), number(time.mean, time.mean_half_width)];
        row.extend(time.quantiles.iter().map(quantile));
        rows.push(row);
    }
    out.push('\n');
    table(out, &rows);
}

fn joins(out: &mut String, solution: &Solution) {
    if solution.joins.is_empty() {
        return;
    }
    let mut rows = vec![vec!["join".to_owned(), "delay".to_owned()]];
    rows.extend(solution.joins.iter().map(|join| vec![joined(join), observed(join.delay, join.delay_half_width)]));
    out.push('\n');
    table(out, &rows);
}

fn joined(join: &JoinResult) -> String {
    format!("{}: {}", join.task, join.activities.join(" & "))
}

fn quantile(q: &Quantile) -> String {
    let end = |value: Option<f64>| value.map_or_else(|| "?".to_owned(), |v| number(v, None));
    format!("{} ({}..{})", number(q.value, None), end(q.lower), end(q.upper))
}

fn lost_requests(out: &mut String, solution: &Solution) {
    let mut rows = vec![vec!["task".to_owned(), "lost requests".to_owned(), "of all that do not wait".to_owned()]];
    for (name, task) in &solution.tasks {
        if let (Some(lost), Some(part)) = (task.lost_requests, task.loss_probability) {
            rows.push(vec![name.clone(), lost.to_string(), number(part, task.loss_probability_half_width)]);
        }
    }
    if rows.len() > 1 {
        out.push('\n');
        table(out, &rows);
    }
}

fn asked_times(out: &mut String, of: &str, asked: &AskedTimes) {
    let of = asked.phase.map_or_else(|| of.to_owned(), |phase| format!("{of}, phase {phase}"));
    if let Some(exceeds) = &asked.exceeds {
        let part = number(exceeds.probability, exceeds.probability_half_width);
        let _ = writeln!(out, "\n  {of}: {part} of the service times exceed {}", exceeds.limit);
    }
    if !asked.histogram.is_empty() {
        let _ = writeln!(out, "\n  {of}: service times");
        let rows: Vec<Vec<String>> = asked.histogram.iter().map(bin).collect();
        table(out, &rows);
    }
}

fn bin(bin: &Bin) -> Vec<String> {
    let ends = bin.end.map_or_else(|| format!("from {}", bin.begin), |end| format!("{}..{end}", bin.begin));
    vec![ends, number(bin.probability, bin.probability_half_width)]
}
