//! Whole extractions of any bytes, and of sequences of events that are well written and otherwise arbitrary.

use std::fmt::Write;

use layerfit::{
    structure::{ExtractOptions, extract},
    trace::{BadRows, Format, Source},
};

/// Extracts from `bytes`, passing over bad rows and refusing them. What comes of it must be a model without errors; or an error, in words.
pub fn extract_bytes(format: Format, bytes: &[u8]) {
    for bad_rows in [BadRows::Count, BadRows::Reject] {
        let options = ExtractOptions { bad_rows, threads: 1, limit_bytes: 1 << 24, ..ExtractOptions::default() };
        match extract(&[Source { name: "fuzz", bytes }], format, &options) {
            Ok(extraction) => {
                let errors: Vec<_> = (extraction.model.validate().into_iter())
                    .filter(|defect| defect.kind.severity() == layerfit::model::Severity::Error)
                    .collect();
                assert!(errors.is_empty(), "{errors:?}");
            }
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
}

/// Writes a row: the text so far, its number, what it is made of.
type WriteRow = fn(&mut String, usize, [u8; 6]);

/// Extracts from the events that `bytes` stand for, the first byte choosing the form.
pub fn extract_events(bytes: &[u8]) {
    let Some((form, rest)) = bytes.split_first() else { return };
    let (format, header, row): (Format, &str, WriteRow) = match form % 5 {
        0 => (Format::Same, "time,kind,process,message_type,msg_id,thread", message_end),
        1 => (Format::Same, "sent,time,sender,receiver,message_type", message),
        2 => (Format::Angio, "scenario,thread,thread_node,kind,child_thread,task,task_node,operation", angio),
        3 => (Format::EventTrace, "operation,thread,next_thread,event,type,task,entry,ack", event),
        _ => (Format::CallPath, "record_id,time,kind,component,method,context_id,transaction_id,message_id", record),
    };
    let mut text = format!("{header}\n");
    for (n, chunk) in rest.as_chunks::<6>().0.iter().enumerate() {
        row(&mut text, n, *chunk);
        text.push('\n');
    }
    extract_bytes(format, text.as_bytes());
}

fn message_end(text: &mut String, n: usize, [kind, process, thread, message, id, late]: [u8; 6]) {
    let kind = if kind % 2 == 0 { "send" } else { "receive" };
    let time = n + usize::from(late);
    let _ = write!(text, "{time},{kind},P{},m{},{},{}", process % 6, message % 4, id % 32, thread % 3);
}

fn message(text: &mut String, n: usize, [from, to, kind, delay, early, _]: [u8; 6]) {
    let sent = n + usize::from(early % 16);
    let _ = write!(text, "{sent},{},P{},P{},m{}", sent + usize::from(delay % 8), from % 6, to % 6, kind % 4);
}

fn angio(text: &mut String, n: usize, [kind, thread, node, task, task_node, child]: [u8; 6]) {
    let kind = ["begin", "activity", "activity", "fork", "end"][usize::from(kind % 5)];
    let child = if kind == "fork" { (child % 6).to_string() } else { String::new() };
    let (node, task_node) = (usize::from(node % 8) + n / 16, usize::from(task_node % 8) + n / 16);
    let _ = write!(text, "s,{},{node},{kind},{child},T{},{task_node},o{}", thread % 6, task % 5, task % 3);
}

fn event(text: &mut String, n: usize, [kind, thread, next, index, task, ack]: [u8; 6]) {
    let kind = ["Ex", "Se", "Re", "Sa", "Ra", "Fo", "Be", "Ac", "En"][usize::from(kind % 9)];
    let next = if kind == "Fo" { (next % 6).to_string() } else { String::new() };
    let ack = ["", "true", "false"][usize::from(ack % 3)];
    let _ = write!(text, "{},{},{next},{},{kind},T{},e{},{ack}", n / 32, thread % 6, index % 12, task % 5, task % 3);
}

fn record(text: &mut String, n: usize, [kind, component, method, context, transaction, message]: [u8; 6]) {
    let kind = ["entry", "exit", "entry", "exit", "call", "return", "send", "receive"][usize::from(kind % 8)];
    let message = if matches!(kind, "send" | "receive") { (message % 8).to_string() } else { String::new() };
    let _ = write!(text, "{n},{},{kind},C{},m{},x{},t{},{message}", n * 10, component % 4, method % 3, context % 3, transaction % 2);
}
