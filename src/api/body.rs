//! Request bodies: bounded in size and time, each and all together, gzip taken off, JSON read.

use std::{io::Read, ops::Deref, sync::Arc, time::Duration};

use axum::{
    body::{Body, Bytes},
    http::{HeaderMap, header},
};
use flate2::read::MultiGzDecoder;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde::de::DeserializeOwned;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    task,
};

use super::{AppState, Code, Error};

/// First bytes of a gzip stream (RFC 1952).
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

/// How large a body may be.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bound {
    /// As sent, bytes.
    pub sent_bytes: usize,
    /// After decompression, bytes.
    pub decompressed_bytes: usize,
}

impl Bound {
    /// The same bound as sent and after decompression.
    pub(super) fn same(bytes: usize) -> Self {
        Self { sent_bytes: bytes, decompressed_bytes: bytes }
    }
}

/// Bytes of a body that nothing is asked for, so that requests that only say what is wanted do not wait for large ones.
const FREE_BYTES: usize = 64 << 10;
/// What room is counted in, bytes.
const UNIT_BYTES: usize = 1 << 10;

/// The memory that bodies of all requests may take together.
#[derive(Debug)]
pub(super) struct Room {
    units: Arc<Semaphore>,
    n_units: u32,
}

impl Room {
    /// Room for so many bytes.
    pub(super) fn new(bytes: usize) -> Self {
        let n_units = n_units(bytes);
        Self { units: Arc::new(Semaphore::new(n_units as usize)), n_units }
    }

    /// Takes room for `bytes`, or all that there is where they are more; waits for it, but not for ever.
    async fn take(&self, bytes: usize, longest: Duration) -> Result<OwnedSemaphorePermit, Error> {
        let taken = Arc::clone(&self.units).acquire_many_owned(n_units(bytes).min(self.n_units));
        match tokio::time::timeout(longest, taken).await {
            Ok(taken) => taken.map_err(Error::internal),
            Err(_) => Err(Error::new(Code::Overloaded, "bodies of other requests take up all the room there is for them; send again")),
        }
    }
}

fn n_units(bytes: usize) -> u32 {
    u32::try_from(bytes.div_ceil(UNIT_BYTES)).unwrap_or(u32::MAX).min(MOST_UNITS)
}

/// As many as a semaphore has on every machine.
const MOST_UNITS: u32 = u32::MAX >> 3;

/// What a body says, with the room that it takes as long as it is there.
#[derive(Debug)]
pub(super) struct Held<T> {
    content: T,
    room: Option<OwnedSemaphorePermit>,
}

impl<T> Deref for Held<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.content
    }
}

/// The whole body, decompressed where `Content-Encoding` says gzip.
///
/// # Errors
/// Too large, too slow, not the gzip it is said to be, another encoding, or empty.
pub(super) async fn read(headers: &HeaderMap, body: Body, bound: Bound, state: &AppState) -> Result<Held<Bytes>, Error> {
    let bytes = read_or_empty(headers, body, bound, state).await?;
    if bytes.is_empty() {
        return Err(Error::new(Code::EmptyBody, "the request has no body"));
    }
    Ok(bytes)
}

/// As [`read`], but nothing is a body too.
///
/// # Errors
/// As of [`read`], but for the empty body.
pub(super) async fn read_or_empty(headers: &HeaderMap, body: Body, bound: Bound, state: &AppState) -> Result<Held<Bytes>, Error> {
    let is_gzip = is_gzip_encoded(headers)?;
    let sent = read_sent(headers, body, bound.sent_bytes, state).await?;
    if is_gzip && !sent.is_empty() { decompress(sent, bound.decompressed_bytes, state).await } else { Ok(sent) }
}

/// As [`read`], and a body that is a gzip file itself is decompressed too.
pub(super) async fn read_file(headers: &HeaderMap, body: Body, bound: Bound, state: &AppState) -> Result<Held<Bytes>, Error> {
    let bytes = read(headers, body, bound, state).await?;
    let bytes = if bytes.starts_with(&GZIP_MAGIC) { decompress(bytes, bound.decompressed_bytes, state).await? } else { bytes };
    if bytes.is_empty() {
        return Err(Error::new(Code::EmptyBody, "the compressed file is empty"));
    }
    Ok(bytes)
}

/// The body as UTF-8 text.
///
/// # Errors
/// As [`read`], and [`Code::MalformedBody`] with the position of what is not UTF-8.
pub(super) async fn read_text(headers: &HeaderMap, body: Body, bytes: usize, state: &AppState) -> Result<Held<String>, Error> {
    let bytes = read(headers, body, Bound::same(bytes), state).await?;
    let Held { content, room } = bytes;
    let text = String::from_utf8(content.into())
        .map_err(|e| Error::new(Code::MalformedBody, format!("the body is not UTF-8 text (byte {})", e.utf8_error().valid_up_to())))?;
    Ok(Held { content: text, room })
}

/// The body as JSON of type `T`.
///
/// # Errors
/// As [`read`], [`Code::UnsupportedMediaType`] when it is said to be something else, and as [`parse_json`].
pub(super) async fn read_json<T: DeserializeOwned>(headers: &HeaderMap, body: Body, state: &AppState) -> Result<T, Error> {
    match media_type(headers).as_deref() {
        // What `curl --data` says when it is not told otherwise stands for "not told".
        None | Some("application/json" | "application/x-www-form-urlencoded") => {}
        Some(other) if other.ends_with("+json") => {}
        Some(other) => {
            return Err(Error::new(Code::UnsupportedMediaType, format!("the body is {other}; expected application/json")));
        }
    }
    let bytes = read(headers, body, Bound::same(state.limits().control_bytes), state).await?;
    if bytes.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'[') {
        // A list in place of an object would be taken for its fields in their order.
        return Err(Error::new(Code::InvalidBody, "the body is a list; expected an object"));
    }
    parse_json(&bytes)
}

/// Reads JSON of type `T`.
///
/// # Errors
/// [`Code::MalformedBody`] for what is not JSON, [`Code::InvalidBody`] for JSON of another shape; both with line and column.
pub(super) fn parse_json<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Error> {
    let mut json = serde_json::Deserializer::from_slice(bytes);
    let read = serde_path_to_error::deserialize(&mut json).map_err(|error| (error.path().to_string(), error.into_inner()));
    let checked = read.and_then(|value| json.end().map(|()| value).map_err(|error| (String::new(), error)));
    checked.map_err(|(field, error)| {
        let (line, column) = (error.line(), error.column());
        if !error.is_data() {
            return Error::new(Code::MalformedBody, error.to_string()).with("line", line).with("column", column);
        }
        let is_named = !matches!(field.as_str(), "" | "." | "?");
        let detail = if is_named { format!("{field}: {error}") } else { error.to_string() };
        let told = Error::new(Code::InvalidBody, detail).with("line", line).with("column", column);
        if is_named { told.with("field", field) } else { told }
    })
}

/// `type/subtype` of the request's `Content-Type`, in lower case.
pub(super) fn media_type(headers: &HeaderMap) -> Option<String> {
    let value = headers.get(header::CONTENT_TYPE)?.to_str().ok()?;
    Some(value.split(';').next()?.trim().to_ascii_lowercase()).filter(|media_type| !media_type.is_empty())
}

fn is_gzip_encoded(headers: &HeaderMap) -> Result<bool, Error> {
    let Some(value) = headers.get(header::CONTENT_ENCODING) else { return Ok(false) };
    match value.to_str().map(str::to_ascii_lowercase).as_deref() {
        Ok("gzip" | "x-gzip") => Ok(true),
        Ok("identity" | "") => Ok(false),
        _ => {
            let detail = format!("the body's encoding is {value:?}; expected gzip or identity");
            Err(Error::new(Code::UnsupportedEncoding, detail).with("expected", vec!["gzip", "identity"]))
        }
    }
}

fn too_large(limit_bytes: usize, when: &str) -> Error {
    Error::new(Code::BodyTooLarge, format!("the body is larger than {limit_bytes} bytes {when}")).with("limit_bytes", limit_bytes)
}

async fn read_sent(headers: &HeaderMap, body: Body, limit_bytes: usize, state: &AppState) -> Result<Held<Bytes>, Error> {
    let announced = headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<usize>().ok());
    if announced.is_some_and(|n| n > limit_bytes) {
        return Err(too_large(limit_bytes, "as sent"));
    }
    let limit = state.limits().body_time;
    let collected = tokio::time::timeout(limit, collect(body, limit_bytes, state)).await;
    collected.unwrap_or_else(|_| Err(Error::new(Code::BodyTimeout, format!("the body took longer than {} s", limit.as_secs_f64()))))
}

/// Takes room for what has come, not for what is announced: who sends nothing takes nothing.
async fn collect(body: Body, limit_bytes: usize, state: &AppState) -> Result<Held<Bytes>, Error> {
    let mut body = Limited::new(body, limit_bytes);
    let (mut bytes, mut room, mut room_bytes) = (Vec::new(), None::<OwnedSemaphorePermit>, FREE_BYTES);
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| match error.is::<LengthLimitError>() {
            true => too_large(limit_bytes, "as sent"),
            false => Error::new(Code::MalformedBody, format!("the body broke off: {error}")),
        })?;
        let Ok(data) = frame.into_data() else { continue };
        if bytes.len() + data.len() > room_bytes {
            let more = (bytes.len() + data.len() - room_bytes).max(FREE_BYTES);
            let taken = state.sent_bodies().take(more, state.limits().room_time).await?;
            room_bytes += more;
            match &mut room {
                Some(room) => room.merge(taken),
                None => room = Some(taken),
            }
        }
        bytes.extend_from_slice(&data);
    }
    Ok(Held { content: bytes.into(), room })
}

/// Decompresses, and stops at `limit_bytes`: a bomb costs no more than an honest body, and many no more than the room that there is.
async fn decompress(gzip: Held<Bytes>, limit_bytes: usize, state: &AppState) -> Result<Held<Bytes>, Error> {
    let small = inflate(gzip.content.clone(), limit_bytes.min(FREE_BYTES)).await?;
    if let Some(content) = small {
        return Ok(Held { content, room: None });
    }
    if limit_bytes <= FREE_BYTES {
        return Err(too_large(limit_bytes, "after decompression"));
    }
    // How large it becomes is not known before.
    let mut room = state.decompressed_bodies().take(limit_bytes, state.limits().room_time).await?;
    let inflated = inflate(gzip.content.clone(), limit_bytes).await?;
    let content = inflated.ok_or_else(|| too_large(limit_bytes, "after decompression"))?;
    drop(room.split(room.num_permits().saturating_sub(n_units(content.len()) as usize)));
    Ok(Held { content, room: Some(room) })
}

/// The decompressed bytes, made on a blocking thread; `None` where they are more than `limit_bytes`.
async fn inflate(gzip: Bytes, limit_bytes: usize) -> Result<Option<Bytes>, Error> {
    let inflated = task::spawn_blocking(move || {
        let mut bytes = Vec::new();
        let limit = u64::try_from(limit_bytes).unwrap_or(u64::MAX);
        MultiGzDecoder::new(&gzip[..]).take(limit.saturating_add(1)).read_to_end(&mut bytes).map(|_| bytes)
    });
    match inflated.await.map_err(Error::internal)? {
        Ok(bytes) => Ok((bytes.len() <= limit_bytes).then(|| bytes.into())),
        Err(error) => Err(Error::new(Code::MalformedBody, format!("the body is not gzip: {error}"))),
    }
}
