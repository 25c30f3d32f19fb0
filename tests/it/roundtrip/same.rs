//! Round trips through message logs.
//!
//! | SAME does not see | because |
//! |---|---|
//! | cycles that send nothing | there is no message |
//! | that requests are of one cycle | a client's request begins something new; recordings kept apart tell it |
//! | what a forwarder waits for after it forwarded | when the last of the chain replies, the forwarder's part is over: calls still open are read as asynchronous, as in the paper's figure 3(a) |
//! | forks and joins, branches, loops | it sees which messages there are and not what leads to them; their counts are right |
//! | second phases of what nobody waits for | there is no reply that would end the first |
//! | parallel calls of what nobody waits for | at the root of a tree, all calls but the last one are read as asynchronous |
//! | demands, and work after the last message | times of messages only |

use layerfit::{
    cli::record::{TraceForm, TraceOptions},
    structure::{ExtractOptions, Extraction, MergeKey, extract},
    trace::{BadRows, Format, Source},
};

use super::{Blind, Features, MANY_MODELS, MODELS, RoundTrip};

/// Cycles of a model in the ordinary run, and in the long one.
const CYCLES: u64 = 400;

fn extract_same(bytes: &[u8]) -> Extraction {
    let options = ExtractOptions { merge: MergeKey::Operation, bad_rows: BadRows::Reject, ..ExtractOptions::default() };
    extract(&[Source { name: "run.csv", bytes }], Format::Same, &options).unwrap()
}

fn round_trip<'t>() -> RoundTrip<'t> {
    RoundTrip {
        features: Features { after_forwarding: false, ..Features::ALL },
        form: TraceForm::Same,
        options: TraceOptions::default(),
        messages_only: true,
        blind: Blind::default(),
        extract: &extract_same,
    }
}

#[test]
fn message_logs_give_the_model_back() {
    round_trip().check(0..MODELS, CYCLES);
}

#[test]
#[ignore = "takes minutes"]
fn message_logs_give_a_thousand_models_back() {
    round_trip().check(0..MANY_MODELS, CYCLES);
}
