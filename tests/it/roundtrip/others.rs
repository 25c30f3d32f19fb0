//! Round trips through the other forms of trace.

use layerfit::{
    cli::record::{TraceForm, TraceOptions},
    structure::{ExtractOptions, Extraction, call_path::CallPathOptions, extract},
    trace::{BadRows, Format, Source},
};

use super::{Blind, Features, MANY_MODELS, RoundTrip};

/// Models of an ordinary test run for each form.
const MODELS: u64 = 24;

const CYCLES: u64 = 400;

fn extracted(format: Format, bytes: &[u8]) -> Extraction {
    // Tasks that are asked more than they can do let messages wait for any time.
    let call_path = CallPathOptions { quiet_records: u64::MAX, ..CallPathOptions::default() };
    let options = ExtractOptions { bad_rows: BadRows::Reject, customers: Some(1.0.into()), call_path, ..ExtractOptions::default() };
    extract(&[Source { name: "run", bytes }], format, &options).unwrap()
}

fn check(form: TraceForm, format: Format, features: Features, blind: Blind, n_models: u64) {
    let extract = |bytes: &[u8]| extracted(format, bytes);
    RoundTrip { features, form, options: TraceOptions::default(), messages_only: false, blind, extract: &extract }
        .check(0..n_models, CYCLES);
}

/// What threads of causes show: they have no joins, and do not say whether what comes from outside waits.
const CAUSES: Features = Features { and_forks: false, open_arrivals: false, ..Features::ALL };

fn check_angio(n_models: u64) {
    check(TraceForm::Angio, Format::Angio, CAUSES, Blind::default(), n_models);
}

#[test]
fn angio_traces_give_the_model_back() {
    check_angio(MODELS);
}

#[test]
#[ignore = "takes minutes"]
fn angio_traces_give_a_thousand_models_back() {
    check_angio(MANY_MODELS);
}

fn check_event_traces(n_models: u64) {
    check(TraceForm::EventTrace, Format::EventTrace, CAUSES, Blind::default(), n_models);
}

#[test]
fn event_traces_give_the_model_back() {
    check_event_traces(MODELS);
}

#[test]
#[ignore = "takes minutes"]
fn event_traces_give_a_thousand_models_back() {
    check_event_traces(MANY_MODELS);
}

fn check_call_paths(n_models: u64) {
    let blind = Blind { forwarding_is_a_call: true, parts_are_messages: true };
    check(TraceForm::CallPath, Format::CallPath, Features::ALL, blind, n_models);
}

#[test]
fn call_path_records_give_the_model_back() {
    check_call_paths(MODELS);
}

#[test]
#[ignore = "takes minutes"]
fn call_path_records_give_a_thousand_models_back() {
    check_call_paths(MANY_MODELS);
}
