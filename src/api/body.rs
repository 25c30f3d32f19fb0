//! Request bodies: bounded in size and time, gzip taken off, JSON read.

use std::io::Read;

use axum::{
    body::{Body, Bytes},
    http::{HeaderMap, header},
};
use flate2::read::MultiGzDecoder;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde::de::DeserializeOwned;
use tokio::task;

use super::{Code, Error, Limits};

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

/// The whole body, decompressed where `Content-Encoding` says gzip.
///
/// # Errors
/// Too large, too slow, not the gzip it is said to be, another encoding, or empty.
pub(super) async fn read(headers: &HeaderMap, body: Body, bound: Bound, limits: &Limits) -> Result<Bytes, Error> {
    let bytes = read_or_empty(headers, body, bound, limits).await?;
    if bytes.is_empty() {
        return Err(Error::new(Code::EmptyBody, "the request has no body"));
    }
    Ok(bytes)
}

/// As [`read`], but nothing is a body too.
///
/// # Errors
/// As of [`read`], but for the empty body.
pub(super) async fn read_or_empty(headers: &HeaderMap, body: Body, bound: Bound, limits: &Limits) -> Result<Bytes, Error> {
    let is_gzip = is_gzip_encoded(headers)?;
    let sent = read_sent(headers, body, bound.sent_bytes, limits).await?;
    if is_gzip && !sent.is_empty() { decompress(sent, bound.decompressed_bytes).await } else { Ok(sent) }
}

/// As [`read`], and a body that is a gzip file itself is decompressed too.
pub(super) async fn read_file(headers: &HeaderMap, body: Body, bound: Bound, limits: &Limits) -> Result<Bytes, Error> {
    let bytes = read(headers, body, bound, limits).await?;
    let bytes = if bytes.starts_with(&GZIP_MAGIC) { decompress(bytes, bound.decompressed_bytes).await? } else { bytes };
    if bytes.is_empty() {
        return Err(Error::new(Code::EmptyBody, "the compressed file is empty"));
    }
    Ok(bytes)
}

/// The body as UTF-8 text.
///
/// # Errors
/// As [`read`], and [`Code::MalformedBody`] with the position of what is not UTF-8.
pub(super) async fn read_text(headers: &HeaderMap, body: Body, bytes: usize, limits: &Limits) -> Result<String, Error> {
    let bytes = read(headers, body, Bound::same(bytes), limits).await?;
    String::from_utf8(bytes.into())
        .map_err(|e| Error::new(Code::MalformedBody, format!("the body is not UTF-8 text (byte {})", e.utf8_error().valid_up_to())))
}

/// The body as JSON of type `T`.
///
/// # Errors
/// As [`read`], [`Code::UnsupportedMediaType`] when it is said to be something else, and as [`parse_json`].
pub(super) async fn read_json<T: DeserializeOwned>(headers: &HeaderMap, body: Body, limits: &Limits) -> Result<T, Error> {
    match media_type(headers).as_deref() {
        // What `curl --data` says when it is not told otherwise stands for "not told".
        None | Some("application/json" | "application/x-www-form-urlencoded") => {}
        Some(other) if other.ends_with("+json") => {}
        Some(other) => {
            return Err(Error::new(Code::UnsupportedMediaType, format!("the body is {other}; expected application/json")));
        }
    }
    let bytes = read(headers, body, Bound::same(limits.control_bytes), limits).await?;
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

async fn read_sent(headers: &HeaderMap, body: Body, limit_bytes: usize, limits: &Limits) -> Result<Bytes, Error> {
    let announced = headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<usize>().ok());
    if announced.is_some_and(|n| n > limit_bytes) {
        return Err(too_large(limit_bytes, "as sent"));
    }
    let collected = tokio::time::timeout(limits.body_time, Limited::new(body, limit_bytes).collect()).await;
    match collected {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(too_large(limit_bytes, "as sent")),
        Ok(Err(error)) => Err(Error::new(Code::MalformedBody, format!("the body broke off: {error}"))),
        Err(_) => Err(Error::new(Code::BodyTimeout, format!("the body took longer than {} s", limits.body_time.as_secs_f64()))),
    }
}

/// Decompresses on a blocking thread, and stops at `limit_bytes`: a bomb costs no more than an honest body.
async fn decompress(gzip: Bytes, limit_bytes: usize) -> Result<Bytes, Error> {
    let decompressed = task::spawn_blocking(move || {
        let mut bytes = Vec::new();
        let limit = u64::try_from(limit_bytes).unwrap_or(u64::MAX);
        MultiGzDecoder::new(&gzip[..]).take(limit.saturating_add(1)).read_to_end(&mut bytes).map(|_| bytes)
    });
    match decompressed.await.map_err(Error::internal)? {
        Ok(bytes) if bytes.len() > limit_bytes => Err(too_large(limit_bytes, "after decompression")),
        Ok(bytes) => Ok(bytes.into()),
        Err(error) => Err(Error::new(Code::MalformedBody, format!("the body is not gzip: {error}"))),
    }
}
