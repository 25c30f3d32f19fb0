//! What traces say beside the structure: profiles and usage models, computed when asked, as a trace never changes.

use std::io::{self, Read};

use axum::{
    Json,
    extract::State,
    http::HeaderMap,
    response::{IntoResponse, Response},
};
use flate2::read::GzDecoder;
use serde::Deserialize;
use utoipa::IntoParams;

use super::{
    AppState, Code, Error, accept,
    error::{ReadProblems, chain},
    extract::{Id, Params},
    state::Awaited,
};
use crate::{
    store::{SystemId, TraceId},
    structure::{
        ExtractOptions,
        observations::{Observed, UserKey, UserOptions, Wanted},
        observe_streams,
        profile::{Level, Metric, ProfileOptions, ViewOptions},
        usage::{ClassChoice, MOST_CLASSES, UsageModel, UsageOptions, UsageSummary},
    },
    trace::{Format, StreamSource, diagnostics},
};

/// What is wanted of a profile.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct ProfileParams {
    /// The time that is looked at: `response` (the default) or `self-time`.
    #[param(value_type = Option<String>, example = "response")]
    metric: Option<Metric>,
    /// The finest contexts that are listed: `operation`, `caller`, `stack` (the default) or `trace`.
    #[param(value_type = Option<String>, example = "stack")]
    by: Option<Level>,
    /// Most levels of calls; by default 12.
    depth: Option<u16>,
    /// Calls and contexts with a smaller part of all time are left out; by default 0.001.
    #[param(minimum = 0, maximum = 1)]
    min_share: Option<f64>,
}

/// What is wanted of a usage model.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct UsageParams {
    /// What joins requests to sessions: `session` (its key), `user` (else the user's name; the default) or `address` (else that
    /// of the client).
    #[param(value_type = Option<String>, example = "user")]
    users: Option<UserKey>,
    /// Longest pause within a session of a user or an address, seconds; by default 1800.
    #[param(exclusive_minimum = 0)]
    idle_gap_s: Option<f64>,
    /// Most classes of behaviour that are looked for; by default 8.
    #[param(minimum = 1, maximum = 16)]
    classes: Option<usize>,
    /// Attributes of spans that name the session of a request, beside `session.id` and its like and those that the trace was stored
    /// with; several with commas between them.
    #[param(example = "tenant.session")]
    session_key: Option<String>,
}

/// The profile of a trace as `layerfit profile --format json` prints it, or as text: times by calling context, and what each
/// level of context explains of their spread.
#[utoipa::path(get, path = "/v1/traces/{trace_id}/profile", tag = "traces", params(("trace_id" = String, Path), ProfileParams),
    responses((status = OK, description = "The profile", content((Object = "application/json"), (String = "text/plain"))), ReadProblems))]
pub(super) async fn get_profile(
    State(state): State<AppState>,
    Id(id): Id<TraceId>,
    Params(params): Params<ProfileParams>,
    headers: HeaderMap,
) -> Result<Response, Error> {
    let media_type = accept::choose(&headers, &["application/json", "text/plain"])?;
    let defaults = ViewOptions::default();
    let least_share = params.min_share.unwrap_or(defaults.least_share);
    if !(0.0..=1.0).contains(&least_share) {
        return Err(Error::new(Code::InvalidQuery, format!("min_share={least_share}: expected a number from 0 to 1")));
    }
    let options = ViewOptions {
        metric: params.metric.unwrap_or_default(),
        by: params.by.unwrap_or(defaults.by),
        depth: params.depth.map_or(defaults.depth, usize::from),
        least_share,
        ..defaults
    };
    let read = stored(&state, id).await?;
    let view = state
        .observe_while(move |awaited| {
            let observed = read.observe(&Wanted { profile: Some(ProfileOptions::default()), users: None }, awaited)?;
            let profile = observed.profile.ok_or_else(|| Error::internal("no profile was made"))?;
            Ok(profile.view(&options))
        })
        .await?;
    Ok(match media_type {
        "text/plain" => (view.to_text() + &diagnostics::in_words(&view.report.diagnostics)).into_response(),
        _ => Json(view).into_response(),
    })
}

/// The usage model of a trace as `layerfit usage --format json` prints it, or as text: sessions as Markov chains of requests,
/// think times, classes of behaviour with their shares. Of received spans (`POST /v1/traces`) it is that of all that their system has
/// sent since the service started; their sessions are joined as they come, so that only `classes` can be asked for.
#[utoipa::path(get, path = "/v1/traces/{trace_id}/usage", tag = "traces", params(("trace_id" = String, Path), UsageParams),
    responses(
        (status = OK, description = "The usage model", content((Object = "application/json"), (String = "text/plain"))),
        ReadProblems
    ))]
pub(super) async fn get_usage(
    State(state): State<AppState>,
    Id(id): Id<TraceId>,
    Params(params): Params<UsageParams>,
    headers: HeaderMap,
) -> Result<Response, Error> {
    let media_type = accept::choose(&headers, &["application/json", "text/plain"])?;
    let mut users = UserOptions { key: params.users.unwrap_or_default(), ..UserOptions::default() };
    if let Some(gap_s) = params.idle_gap_s {
        if !(gap_s.is_finite() && gap_s > 0.0) {
            return Err(Error::new(Code::InvalidQuery, format!("idle_gap_s={gap_s}: expected a number of seconds above 0")));
        }
        users.sessions.idle_gap_s = gap_s;
        users.sessions.session_gap_s = users.sessions.session_gap_s.max(gap_s);
    }
    let classes = match params.classes {
        None => UsageOptions::default().classes,
        Some(1) => ClassChoice::One,
        Some(most) if (1..=MOST_CLASSES).contains(&most) => ClassChoice::Clustered { most },
        Some(most) => return Err(Error::new(Code::InvalidQuery, format!("classes={most}: expected 1 to {MOST_CLASSES}"))),
    };
    let mut read = stored(&state, id).await?;
    if read.is_received() {
        params.check_received()?;
        let sessions = received_sessions(&state, read.system).await?;
        let usage = state.observe_while(move |_| usage_of(&sessions, classes)).await?;
        return Ok(usage_response(usage, media_type));
    }
    if let Some(keys) = &params.session_key {
        let keys: Vec<String> = keys.split(',').map(|key| key.trim().to_owned()).collect();
        if keys.iter().any(String::is_empty) {
            return Err(Error::new(Code::InvalidQuery, "session_key: expected names of attributes with commas between them".to_owned()));
        }
        read.options.spans.session_keys.extend(keys);
    }
    let usage = state
        .observe_while(move |awaited| {
            let observed = read.observe(&Wanted { profile: None, users: Some(users) }, awaited)?;
            let sessions = observed.usage.ok_or_else(|| Error::internal("no sessions were looked for"))?;
            usage_of(&sessions, classes)
        })
        .await?;
    Ok(usage_response(usage, media_type))
}

async fn received_sessions(state: &AppState, system: SystemId) -> Result<Box<UsageSummary>, Error> {
    let none = || Error::new(Code::NotObserved, "the system has sent no spans since the service started, and those before are not kept");
    let held = state.receptions().hold_known(system).await.ok_or_else(none)?;
    state.compute(move || held.sessions(system).ok_or_else(none)).await
}

fn usage_of(sessions: &UsageSummary, classes: ClassChoice) -> Result<UsageModel, Error> {
    let options = UsageOptions { classes, ..UsageOptions::default() };
    UsageModel::of(sessions, &options).map_err(|error| Error::new(Code::NotObserved, chain(&error)))
}

fn usage_response(usage: UsageModel, media_type: &str) -> Response {
    match media_type {
        "text/plain" => (usage.to_text() + &diagnostics::in_words(&usage.diagnostics)).into_response(),
        _ => Json(usage).into_response(),
    }
}

impl UsageParams {
    /// Checks that nothing is asked of received spans that was settled when they came.
    fn check_received(&self) -> Result<(), Error> {
        let settled =
            [("users", self.users.is_some()), ("idle_gap_s", self.idle_gap_s.is_some()), ("session_key", self.session_key.is_some())];
        match settled.into_iter().find(|(_, is_asked)| *is_asked) {
            Some((name, _)) => {
                let detail = format!("{name}: sessions of received spans are joined as these come; only classes can be asked for");
                Err(Error::new(Code::InvalidQuery, detail))
            }
            None => Ok(()),
        }
    }
}

/// A stored trace, to be read.
struct Stored {
    system: SystemId,
    format: String,
    options: ExtractOptions,
    gzip: Vec<u8>,
}

async fn stored(state: &AppState, id: TraceId) -> Result<Stored, Error> {
    let trace = state.store().load_trace(id).await?.ok_or_else(|| Error::not_found("trace", id))?;
    let gzip = state.store().load_trace_gzip(id).await?.ok_or_else(|| Error::not_found("trace", id))?;
    Ok(Stored { system: trace.system_id, format: trace.format, options: trace.options, gzip })
}

impl Stored {
    /// Whether it stands for received spans, which are not kept.
    fn is_received(&self) -> bool {
        self.gzip.is_empty()
    }

    /// Reads it for what is wanted, as its extraction does, and as long as anybody waits for it.
    fn observe(&self, wanted: &Wanted, awaited: &Awaited) -> Result<Observed, Error> {
        if self.is_received() {
            return Err(Error::new(
                Code::NotObserved,
                "received spans are not kept once their traces have ended: expected an uploaded trace",
            ));
        }
        let format: Format = self.format.parse().map_err(Error::internal)?;
        let reader = GzDecoder::new(AwaitedBytes { bytes: &self.gzip, awaited });
        let source = StreamSource { name: "trace".to_owned(), reader: Box::new(reader) };
        observe_streams(vec![source], format, &self.options, wanted).map_err(|error| Error::new(Code::NotObserved, chain(&error)))
    }
}

/// Bytes that cannot be read any more once nobody waits for what they give.
struct AwaitedBytes<'a> {
    bytes: &'a [u8],
    awaited: &'a Awaited,
}

impl Read for AwaitedBytes<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.awaited.is_awaited() { self.bytes.read(buffer) } else { Err(io::Error::other("nobody waits for it any more")) }
    }
}
