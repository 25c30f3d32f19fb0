//! Spans of protobuf whose texts are borrowed from the bytes.
//!
//! Input: the bytes of a `Span`; output: its fields as [`messages::Span`] has them, without a copy of any text. What is out of the
//! ordinary (a wrong wire type, a text that is not UTF-8, an attribute with two values, an end too early) is left to prost, which
//! says what is wrong with it.

use smallvec::SmallVec;

use super::{super::json::Scalar, messages};

/// A span's fields.
#[derive(Clone, Debug, Default)]
pub(super) struct BorrowedSpan<'b> {
    pub(super) trace_id: &'b [u8],
    pub(super) span_id: &'b [u8],
    pub(super) parent_span_id: &'b [u8],
    pub(super) trace_state: &'b str,
    pub(super) name: &'b str,
    pub(super) kind: i32,
    pub(super) start_time_unix_nano: u64,
    pub(super) end_time_unix_nano: u64,
    pub(super) attributes: SmallVec<[(&'b str, Scalar<'b>); 16]>,
    /// Trace and span of each link.
    pub(super) links: SmallVec<[(&'b [u8], &'b [u8]); 1]>,
    pub(super) status_message: &'b str,
    pub(super) status_code: i32,
}

impl<'b> BorrowedSpan<'b> {
    /// The span that `bytes` are; `None` if prost is to look at them.
    pub(super) fn of(bytes: &'b [u8]) -> Option<Self> {
        let mut span = Self::default();
        let mut has_status = false;
        for field in Fields(bytes) {
            match field? {
                (1, Value::Bytes(id)) => span.trace_id = id,
                (2, Value::Bytes(id)) => span.span_id = id,
                (3, Value::Bytes(state)) => span.trace_state = std::str::from_utf8(state).ok()?,
                (4, Value::Bytes(id)) => span.parent_span_id = id,
                (5, Value::Bytes(name)) => span.name = std::str::from_utf8(name).ok()?,
                (6, Value::Varint(kind)) => span.kind = kind as i32,
                (7, Value::Fixed64(time)) => span.start_time_unix_nano = time,
                (8, Value::Fixed64(time)) => span.end_time_unix_nano = time,
                (9, Value::Bytes(attribute)) => span.attributes.push(key_value(attribute)?),
                (13, Value::Bytes(link)) => span.links.push(ids(link)?),
                (15, Value::Bytes(status)) if !has_status => {
                    has_status = true;
                    (span.status_message, span.status_code) = message_and_code(status)?;
                }
                (1..=9 | 13 | 15, _) => return None,
                _ => {}
            }
        }
        Some(span)
    }

    /// The same of what prost decoded.
    pub(super) fn of_message(message: &'b messages::Span) -> Self {
        let status = message.status.as_ref();
        Self {
            trace_id: &message.trace_id,
            span_id: &message.span_id,
            parent_span_id: &message.parent_span_id,
            trace_state: &message.trace_state,
            name: &message.name,
            kind: message.kind,
            start_time_unix_nano: message.start_time_unix_nano,
            end_time_unix_nano: message.end_time_unix_nano,
            attributes: message.attributes.iter().map(|attribute| (attribute.key.as_str(), scalar(attribute))).collect(),
            links: message.links.iter().map(|link| (link.trace_id.as_slice(), link.span_id.as_slice())).collect(),
            status_message: status.map_or("", |status| &status.message),
            status_code: status.map_or(0, |status| status.code),
        }
    }
}

/// The value of an attribute that prost decoded.
pub(super) fn scalar(attribute: &messages::KeyValue) -> Scalar<'_> {
    match attribute.value.as_ref().and_then(|value| value.value.as_ref()) {
        Some(messages::Value::Text(text)) => Scalar::Text(text.into()),
        Some(messages::Value::Bool(v)) => Scalar::Bool(*v),
        Some(messages::Value::Int(v)) => Scalar::Int(*v),
        Some(messages::Value::Double(v)) => Scalar::Float(*v),
        None => Scalar::Other,
    }
}

fn key_value(bytes: &[u8]) -> Option<(&str, Scalar<'_>)> {
    let (mut key, mut value) = ("", None);
    for field in Fields(bytes) {
        match field? {
            (1, Value::Bytes(text)) => key = std::str::from_utf8(text).ok()?,
            (2, Value::Bytes(bytes)) if value.is_none() => value = Some(any_value(bytes)?),
            (1 | 2, _) => return None,
            _ => {}
        }
    }
    Some((key, value.unwrap_or(Scalar::Other)))
}

fn any_value(bytes: &[u8]) -> Option<Scalar<'_>> {
    let mut value = Scalar::Other;
    for field in Fields(bytes) {
        value = match field? {
            (1, Value::Bytes(text)) => Scalar::Text(std::str::from_utf8(text).ok()?.into()),
            (2, Value::Varint(v)) => Scalar::Bool(v != 0),
            (3, Value::Varint(v)) => Scalar::Int(v as i64),
            (4, Value::Fixed64(v)) => Scalar::Float(f64::from_bits(v)),
            (1..=4, _) => return None,
            _ => continue,
        };
    }
    Some(value)
}

fn ids(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut ids: (&[u8], &[u8]) = (&[], &[]);
    for field in Fields(bytes) {
        match field? {
            (1, Value::Bytes(trace)) => ids.0 = trace,
            (2, Value::Bytes(span)) => ids.1 = span,
            (1 | 2, _) => return None,
            _ => {}
        }
    }
    Some(ids)
}

fn message_and_code(bytes: &[u8]) -> Option<(&str, i32)> {
    let (mut message, mut code) = ("", 0);
    for field in Fields(bytes) {
        match field? {
            (2, Value::Bytes(text)) => message = std::str::from_utf8(text).ok()?,
            (3, Value::Varint(number)) => code = number as i32,
            (2 | 3, _) => return None,
            _ => {}
        }
    }
    Some((message, code))
}

/// A field's value as it is written.
enum Value<'b> {
    Varint(u64),
    Fixed64(u64),
    Bytes(&'b [u8]),
    Fixed32,
}

/// The fields of a message with their numbers; `None` where it is broken, which is then the last.
struct Fields<'b>(&'b [u8]);

impl<'b> Fields<'b> {
    fn field(&mut self) -> Option<(u32, Value<'b>)> {
        let key = u32::try_from(self.varint()?).ok()?;
        let value = match key & 7 {
            0 => Value::Varint(self.varint()?),
            1 => Value::Fixed64(u64::from_le_bytes(self.take(8)?.try_into().ok()?)),
            2 => {
                let length = usize::try_from(self.varint()?).ok()?;
                Value::Bytes(self.take(length)?)
            }
            5 => {
                self.take(4)?;
                Value::Fixed32
            }
            _ => return None,
        };
        Some((key >> 3, value)).filter(|(number, _)| *number > 0)
    }

    fn varint(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..63).step_by(7) {
            let byte = *self.0.split_off_first()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        // The tenth byte has one bit.
        let byte = *self.0.split_off_first()?;
        (byte < 2).then_some(value | u64::from(byte) << 63)
    }

    fn take(&mut self, n_bytes: usize) -> Option<&'b [u8]> {
        self.0.split_off(..n_bytes)
    }
}

impl<'b> Iterator for Fields<'b> {
    type Item = Option<(u32, Value<'b>)>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_none() {
            self.0 = &[];
        }
        Some(field)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use prost::Message;

    use super::*;

    fn same(bytes: &[u8]) {
        let Some(borrowed) = BorrowedSpan::of(bytes) else { return };
        let message = messages::Span::decode(bytes).expect("what is read here, prost reads");
        assert_eq!(format!("{borrowed:?}"), format!("{:?}", BorrowedSpan::of_message(&message)));
    }

    fn value() -> impl Strategy<Value = Option<messages::AnyValue>> {
        let value = prop_oneof![
            "[a-zé]{0,12}".prop_map(messages::Value::Text),
            any::<bool>().prop_map(messages::Value::Bool),
            any::<i64>().prop_map(messages::Value::Int),
            any::<f64>().prop_map(messages::Value::Double),
        ];
        prop::option::of(prop::option::of(value).prop_map(|value| messages::AnyValue { value }))
    }

    prop_compose! {
        fn span()(
            ids in prop::collection::vec(any::<[u8; 8]>(), 0..4),
            texts in prop::collection::vec("[a-zé]{0,200}", 3),
            kind in any::<i32>(),
            times in any::<[u64; 2]>(),
            attributes in prop::collection::vec(("[a-z.]{0,20}", value()), 0..20),
            status in prop::option::of(any::<i32>()),
        ) -> messages::Span {
            let id = |at: usize| ids.get(at).map_or_else(Vec::new, |id: &[u8; 8]| id.to_vec());
            messages::Span {
                trace_id: [id(0), id(1)].concat(),
                span_id: id(1),
                parent_span_id: id(2),
                trace_state: texts[0].clone(),
                name: texts[1].clone(),
                kind,
                start_time_unix_nano: times[0],
                end_time_unix_nano: times[1],
                attributes: attributes.into_iter().map(|(key, value)| messages::KeyValue { key, value }).collect(),
                links: ids.iter().map(|id| messages::Link { trace_id: id.to_vec(), span_id: id[..4].to_vec() }).collect(),
                status: status.map(|code| messages::Status { message: texts[2].clone(), code }),
            }
        }
    }

    proptest! {
        /// Whole spans are read here, and both readers agree, also on bytes that were changed or cut.
        #[test]
        fn reads_what_prost_reads(span in span(), place in any::<prop::sample::Index>(), byte in any::<u8>()) {
            let mut bytes = span.encode_to_vec();
            prop_assert!(BorrowedSpan::of(&bytes).is_some());
            same(&bytes);
            if !bytes.is_empty() {
                let at = place.index(bytes.len());
                same(&bytes[..at]);
                bytes[at] = byte;
                same(&bytes);
            }
        }

        #[test]
        fn any_bytes_are_read_alike_or_left_to_prost(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            same(&bytes);
        }
    }
}
