//! An extraction in words.

use std::fmt::Write;

use crate::{
    model::{Model, Number},
    structure::{Accepts, ArcKind, CallReport, EntryReport, Extraction, Record, TaskReport, interactions::InteractionKind},
    trace::diagnostics::in_words as diagnostics_in_words,
};

/// Records that the text report shows.
const RECORDS_SHOWN: usize = 20;

/// Observations below which an element of the model is marked as resting on few.
const FEW: u64 = 30;

/// The whole report.
pub(super) fn report(extraction: &Extraction) -> String {
    let mut text = String::new();
    let counts = &extraction.interactions;
    let _ = writeln!(text, "model {}", extraction.model.name);
    let _ = writeln!(text, "interactions: {} synchronous, {} asynchronous, {} forwarded", counts.sync, counts.asynchronous, counts.forward);
    if extraction.scenarios.len() > 1 {
        let _ = writeln!(text, "\nscenarios");
        for scenario in &extraction.scenarios {
            let _ = writeln!(text, "  {:<24} {:>6} traces  probability {:.4}", scenario.name, scenario.traces, scenario.probability);
        }
    }
    let _ = writeln!(text, "\ntasks");
    let few = if extraction.quality.is_some() { FEW } else { 0 };
    extraction.tasks.iter().for_each(|task| report_task(&mut text, task, &extraction.model, few));
    let _ = writeln!(text, "\nrecords");
    extraction.records.iter().take(RECORDS_SHOWN).for_each(|record| report_record(&mut text, record));
    if let Some(more) = extraction.records.len().checked_sub(RECORDS_SHOWN).filter(|more| *more > 0) {
        let left_out = extraction.records_left_out;
        let has = if left_out > 0 { format!("{left_out} are not kept (--records)") } else { "--format json has all".to_owned() };
        let _ = writeln!(text, "  … and {} more; {has}", more as u64 + left_out);
    }
    if let Some(quality) = &extraction.quality {
        let _ = writeln!(text, "\n{}", quality.text().trim_end());
    }
    if let Some(usage) = &extraction.usage {
        let _ = writeln!(text, "\nusage: reference tasks are of the sessions seen\n{}", usage.to_text().trim_end());
    }
    text + &diagnostics_in_words(&extraction.diagnostics)
}

/// Entries with fewer than `few` occurrences are marked.
fn report_task(text: &mut String, task: &TaskReport, model: &Model, few: u64) {
    let kind = if task.reference { "reference task" } else { "task" };
    let seen = if task.is_infinite { "any number of threads".to_owned() } else { format!("{} seen", plural(task.threads, "thread")) };
    let who = population(task, model).unwrap_or(seen);
    let _ = writeln!(text, "  {kind} {} on {}, {who}", task.name, task.processor);
    for entry in &task.entries {
        let accepts = match entry.accepts {
            Accepts::Nothing => "starts on its own",
            Accepts::Sync => "replies",
            Accepts::Async => "does not reply",
        };
        let mark = if entry.occurrences < few && !task.reference { " (few)" } else { "" };
        let _ = write!(text, "    {}: {accepts}, {}{mark}", entry.name, plural(entry.occurrences, "occurrence"));
        let times: Vec<String> = entry.self_times.iter().map(|t| t.map_or("unknown".into(), |t| format!("{t:.6} s"))).collect();
        let _ = writeln!(text, ", self time {}", times.join(" + "));
        entry.calls.iter().for_each(|call| report_call(text, call, entry));
    }
}

/// Customers and their think time; `None` where these are only as many as were seen at once.
fn population(task: &TaskReport, model: &Model) -> Option<String> {
    let of = model.task(&task.name).filter(|_| task.reference)?;
    let (is_one, is_seen) = (of.multiplicity.is(1.0), of.multiplicity.is(task.threads as f64));
    if is_seen && of.think_time.is(0.0) {
        return None;
    }
    let customers = if is_one { "customer" } else { "customers" };
    Some(format!("{} {customers}, think time {} s", number(&of.multiplicity), number(&of.think_time)))
}

fn number(number: &Number) -> String {
    number.literal().map_or_else(|| number.to_string(), rounded)
}

/// To six decimals, without zeros at the end.
fn rounded(value: f64) -> String {
    ((value * 1e6).round() / 1e6).to_string()
}

fn report_call(text: &mut String, call: &CallReport, entry: &EntryReport) {
    let (CallReport { to, phase, .. }, mean) = (call, rounded(call.mean));
    let line = match call.kind {
        ArcKind::Sync => format!("phase {phase} calls {to} × {mean}"),
        ArcKind::Async => format!("phase {phase} sends to {to} × {mean}"),
        ArcKind::Forward => format!("forwards to {to} with probability {mean}"),
    };
    let share = if call.occurrences > 0 && call.occurrences < entry.occurrences {
        format!(", in {} of {} occurrences", call.occurrences, entry.occurrences)
    } else {
        String::new()
    };
    let _ = writeln!(text, "      {line}{share}");
}

fn plural(n: u64, noun: &str) -> String {
    if n == 1 { format!("{n} {noun}") } else { format!("{n} {noun}s") }
}

fn report_record(text: &mut String, record: &Record) {
    let kind = match record.kind {
        InteractionKind::Sync => "sync   ",
        InteractionKind::Async => "async  ",
        InteractionKind::Forward => "forward",
    };
    let chain: Vec<&str> = [&record.from].into_iter().chain(&record.via).chain([&record.to]).map(String::as_str).collect();
    let times: Vec<String> = record.times.iter().map(ToString::to_string).collect();
    let phase = if record.phase == 2 { ", phase 2" } else { "" };
    let _ = writeln!(text, "  {kind} {} at {}{phase}", chain.join(" → "), times.join(", "));
}
