//! Request bodies: bounded in size and time, each and all together, gzip taken off, JSON read.

use std::{
    io::Read,
    ops::Deref,
    sync::Arc,
    time::{Duration, Instant},
};

use axum::{
    body::{Body, Bytes, HttpBody},
    http::{HeaderMap, header},
};
use flate2::read::MultiGzDecoder;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde::{Deserialize, Deserializer, de::DeserializeOwned};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    task,
};

use super::{AppState, Code, Error};
use crate::{model::objects::Objects, trace::input};

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

/// Share of the room that is kept for small bodies, so that they do not wait behind large ones: an eighth.
const SMALL_PART: usize = 8;
/// Share of the room up to which a body is small: a sixty-fourth.
const SMALL_BODY: usize = 64;

/// The memory that bodies of all requests may take together.
#[derive(Debug)]
pub(super) struct Room {
    small: Part,
    large: Part,
    /// Largest small body, bytes.
    small_bytes: usize,
}

/// Room for bodies of one kind.
#[derive(Debug)]
struct Part {
    units: Arc<Semaphore>,
    n_units: u32,
}

impl Part {
    fn new(bytes: usize) -> Self {
        let n_units = n_units(bytes);
        Self { units: Arc::new(Semaphore::new(n_units as usize)), n_units }
    }
}

impl Room {
    /// Room for so many bytes.
    pub(super) fn new(bytes: usize) -> Self {
        let small = bytes / SMALL_PART;
        Self { small: Part::new(small), large: Part::new(bytes - small), small_bytes: bytes / SMALL_BODY }
    }

    /// Takes room for `bytes` of a body of `body_bytes`, or all that there is where they are more; waits for it, but not for ever. Who holds room
    /// for large bodies takes no more, so that no two wait for each other.
    async fn take(&self, bytes: usize, body_bytes: usize, longest: Duration) -> Result<OwnedSemaphorePermit, Error> {
        let part = if body_bytes <= self.small_bytes { &self.small } else { &self.large };
        let taken = Arc::clone(&part.units).acquire_many_owned(n_units(bytes).min(part.n_units));
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
    room: Vec<OwnedSemaphorePermit>,
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
    if is_gzip && !sent.is_empty() { decompress(sent, Compressed::Gzip, bound.decompressed_bytes, state).await } else { Ok(sent) }
}

/// As [`read`], and a body that is a gzip or zstd file itself is decompressed too.
pub(super) async fn read_file(headers: &HeaderMap, body: Body, bound: Bound, state: &AppState) -> Result<Held<Bytes>, Error> {
    let bytes = read(headers, body, bound, state).await?;
    let bytes = match input::is_compressed(&bytes) {
        true => decompress(bytes, Compressed::File, bound.decompressed_bytes, state).await?,
        false => bytes,
    };
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
        // The reader of JSON would say it by the name of a type.
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
    let read = serde_path_to_error::deserialize(Objects(&mut json)).map_err(|error| (error.path().to_string(), error.into_inner()));
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

/// Reads a field that may be `null`, which is as if it were absent; for `#[serde(default, deserialize_with = "null_as_default")]`.
///
/// # Errors
/// What `T` says.
pub(super) fn null_as_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(deserializer: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
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
    let announced = announced.or_else(|| body.size_hint().exact().and_then(|n| usize::try_from(n).ok()));
    collect(body, announced, limit_bytes, state).await
}

/// Takes room once something has come (who sends nothing takes nothing), then for all that is announced: who waits for room holds none that
/// another needs. Without an announcement it is room for a small body, and beyond that for the largest one.
async fn collect(body: Body, announced: Option<usize>, limit_bytes: usize, state: &AppState) -> Result<Held<Bytes>, Error> {
    let mut body = Limited::new(body, limit_bytes);
    let (mut bytes, mut room, mut room_bytes) = (Vec::new(), Vec::new(), FREE_BYTES);
    let (all, longest) = (state.sent_bodies(), state.limits().room_time);
    // Time that is spent waiting for room is not the client's.
    let mut time_left = state.limits().body_time;
    loop {
        let begun = Instant::now();
        let Ok(frame) = tokio::time::timeout(time_left, body.frame()).await else {
            let seconds = state.limits().body_time.as_secs_f64();
            return Err(Error::new(Code::BodyTimeout, format!("the body took longer than {seconds} s")));
        };
        time_left = time_left.saturating_sub(begun.elapsed());
        let Some(frame) = frame else { break };
        let frame = frame.map_err(|error| match error.is::<LengthLimitError>() {
            true => too_large(limit_bytes, "as sent"),
            false => Error::new(Code::MalformedBody, format!("the body broke off: {error}")),
        })?;
        let Ok(data) = frame.into_data() else { continue };
        let needed = bytes.len() + data.len();
        if needed > room_bytes {
            let body_bytes = match announced.filter(|n| *n >= needed) {
                Some(announced) => announced,
                None if needed <= all.small_bytes => all.small_bytes.min(limit_bytes),
                None => limit_bytes,
            };
            room.push(all.take(body_bytes - room_bytes, body_bytes, longest).await?);
            room_bytes = body_bytes;
        }
        bytes.extend_from_slice(&data);
    }
    if announced.is_none() {
        shrink(&mut room, bytes.len());
    }
    Ok(Held { content: bytes.into(), room })
}

/// Gives back room that `n_bytes` do not need, the last taken first.
fn shrink(room: &mut [OwnedSemaphorePermit], n_bytes: usize) {
    let mut surplus = room.iter().map(OwnedSemaphorePermit::num_permits).sum::<usize>().saturating_sub(n_units(n_bytes) as usize);
    for taken in room.iter_mut().rev() {
        let given = surplus.min(taken.num_permits());
        drop(taken.split(given));
        surplus -= given;
    }
}

/// How a body is compressed.
#[derive(Clone, Copy, Debug)]
enum Compressed {
    /// As its content encoding says.
    Gzip,
    /// As a file of a kind that its first bytes tell.
    File,
}

impl Compressed {
    fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::File => "the compressed file that it begins as",
        }
    }
}

/// Decompresses, and stops at `limit_bytes`: a bomb costs no more than an honest body, and many no more than the room that there is. How large
/// it becomes is not known before: what is not small is begun again, with room for the largest.
async fn decompress(sent: Held<Bytes>, compressed: Compressed, limit_bytes: usize, state: &AppState) -> Result<Held<Bytes>, Error> {
    let all = state.decompressed_bodies();
    let smaller = [FREE_BYTES, all.small_bytes].into_iter().filter(|bytes| (FREE_BYTES..limit_bytes).contains(bytes));
    for bytes in smaller.chain([limit_bytes]) {
        let mut room = Vec::new();
        if bytes > FREE_BYTES {
            room.push(all.take(bytes, bytes, state.limits().room_time).await?);
        }
        if let Some(content) = inflate(sent.content.clone(), compressed, bytes).await? {
            shrink(&mut room, content.len());
            return Ok(Held { content, room });
        }
    }
    Err(too_large(limit_bytes, "after decompression"))
}

/// The decompressed bytes, made on a blocking thread; `None` where they are more than `limit_bytes`.
async fn inflate(sent: Bytes, compressed: Compressed, limit_bytes: usize) -> Result<Option<Bytes>, Error> {
    let inflated = task::spawn_blocking(move || {
        let mut bytes = Vec::new();
        let limit = u64::try_from(limit_bytes).unwrap_or(u64::MAX);
        let all = limit.saturating_add(1);
        let read = match compressed {
            Compressed::Gzip => MultiGzDecoder::new(&sent[..]).take(all).read_to_end(&mut bytes),
            Compressed::File => input::open(&sent[..], u64::MAX).take(all).read_to_end(&mut bytes),
        };
        read.map(|_| bytes)
    });
    match inflated.await.map_err(Error::internal)? {
        Ok(bytes) => Ok((bytes.len() <= limit_bytes).then(|| bytes.into())),
        Err(error) => Err(Error::new(Code::MalformedBody, format!("the body is not {}: {error}", compressed.name()))),
    }
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;
    use tokio_stream::StreamExt;

    use super::*;
    use crate::{
        api::Limits,
        jobs::{Jobs, Options},
        store::Store,
    };

    const PIECE_BYTES: usize = 50 << 10;

    async fn service(limits: Limits) -> (AppState, TempDir) {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&format!("sqlite://{}", folder.path().join("test.db").display())).await.unwrap();
        let jobs = Jobs::start(store.clone(), Options { n_workers: 0, ..Options::default() }).await.unwrap();
        (AppState::new(store, jobs, limits), folder)
    }

    /// A body that comes piece by piece, others having their turn between two.
    fn pieces(n: usize) -> Body {
        let pieces = tokio_stream::iter(vec![Bytes::from(vec![b'x'; PIECE_BYTES]); n]);
        Body::from_stream(pieces.then(|piece| async {
            task::yield_now().await;
            Ok::<_, std::io::Error>(piece)
        }))
    }

    #[tokio::test]
    async fn large_bodies_do_not_lock_each_other_out() {
        const N_PIECES: usize = 10;
        let bytes = N_PIECES * PIECE_BYTES;
        let (state, _folder) = service(Limits { sent_bodies_bytes: 3 * bytes, ..Limits::default() }).await;
        for announced in [Some(bytes), None] {
            let mut reading = task::JoinSet::new();
            for _ in 0..8 {
                let state = state.clone();
                reading.spawn(async move { collect(pieces(N_PIECES), announced, bytes, &state).await.map(|body| body.len()) });
            }
            let read = tokio::time::timeout(state.limits().room_time / 2, reading.join_all()).await.expect("none waits for another's end");
            assert!(read.iter().all(|read| read.as_ref().is_ok_and(|n| *n == bytes)), "{read:?}");
        }
    }

    #[tokio::test]
    async fn waiting_for_room_is_not_the_clients_time_and_small_bodies_do_not_wait_behind_large_ones() {
        let body_time = Duration::from_millis(300);
        let room_bytes = 64 * 3 * PIECE_BYTES;
        let (state, _folder) = service(Limits { body_time, sent_bodies_bytes: room_bytes, ..Limits::default() }).await;
        let all = state.sent_bodies().take(room_bytes, room_bytes, Duration::ZERO).await.unwrap();
        let waiting = task::spawn({
            let state = state.clone();
            async move { collect(pieces(10), Some(10 * PIECE_BYTES), room_bytes, &state).await }
        });
        tokio::time::sleep(2 * body_time).await;
        assert!(!waiting.is_finished());
        let small = tokio::time::timeout(state.limits().room_time / 2, collect(pieces(3), None, room_bytes, &state)).await;
        assert_eq!(small.expect("it does not wait").unwrap().len(), 3 * PIECE_BYTES);
        drop(all);
        assert_eq!(waiting.await.unwrap().unwrap().len(), 10 * PIECE_BYTES);
    }

    #[tokio::test]
    async fn small_bodies_that_are_compressed_do_not_wait_for_large_ones() {
        let room_bytes = 64 * 3 * PIECE_BYTES;
        let (state, _folder) = service(Limits { decompressed_bodies_bytes: room_bytes, ..Limits::default() }).await;
        let _all = state.decompressed_bodies().take(room_bytes, room_bytes, Duration::ZERO).await.unwrap();
        let mut gzip = Vec::new();
        flate2::read::GzEncoder::new(&[b'x'; 2 * PIECE_BYTES][..], flate2::Compression::fast()).read_to_end(&mut gzip).unwrap();
        let gzip = Held { content: gzip.into(), room: Vec::new() };
        let inflated = tokio::time::timeout(state.limits().room_time / 2, decompress(gzip, Compressed::Gzip, room_bytes, &state)).await;
        assert_eq!(inflated.expect("it does not wait").unwrap().len(), 2 * PIECE_BYTES);
    }
}
