//! Ids: uuid v7, one type for each kind of thing, so that a fit's id cannot be taken for a model's.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};
use sqlx::{Decode, Encode, Sqlite, Type, encode::IsNull, error::BoxDynError, sqlite};
use uuid::Uuid;

/// A text that is not an id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{text}\" is not an id: expected a uuid such as 01932c07-209c-7f3a-8d2e-2f1c7b3d9a51")]
pub struct MalformedId {
    /// The text as given.
    pub text: String,
}

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Uuid);

        impl $name {
            /// A new id, greater than every earlier one of this process.
            pub fn generate() -> Self {
                Self(Uuid::now_v7())
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}", self.0.as_hyphenated())
            }
        }

        impl FromStr for $name {
            type Err = MalformedId;

            fn from_str(text: &str) -> Result<Self, MalformedId> {
                Uuid::try_parse(text).map(Self).map_err(|_| MalformedId { text: text.to_owned() })
            }
        }

        impl Type<Sqlite> for $name {
            fn type_info() -> sqlite::SqliteTypeInfo {
                <str as Type<Sqlite>>::type_info()
            }
        }

        impl<'q> Encode<'q, Sqlite> for $name {
            fn encode_by_ref(&self, buffer: &mut sqlite::SqliteArgumentsBuffer) -> Result<IsNull, BoxDynError> {
                <String as Encode<'q, Sqlite>>::encode(self.to_string(), buffer)
            }
        }

        impl<'r> Decode<'r, Sqlite> for $name {
            fn decode(value: sqlite::SqliteValueRef<'r>) -> Result<Self, BoxDynError> {
                Ok(<&str as Decode<'r, Sqlite>>::decode(value)?.parse()?)
            }
        }
    )*};
}

ids! {
    /// Id of a system.
    SystemId;
    /// Id of a trace.
    TraceId;
    /// Id of a structure.
    StructureId;
    /// Id of a model version.
    ModelId;
    /// Id of a version of the trials.
    TrialsId;
    /// Id of a fit.
    FitId;
    /// Id of a job.
    JobId;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_grow() {
        let ids: Vec<FitId> = (0..1000).map(|_| FitId::generate()).collect();
        assert!(ids.is_sorted());
        assert!(ids.iter().map(ToString::to_string).is_sorted(), "as text, which is what the database compares");
    }

    #[test]
    fn other_texts_are_refused() {
        for text in ["", "1", "01932c07-209c-7f3a-8d2e-2f1c7b3d9a5", "../../etc/passwd"] {
            assert_eq!(text.parse::<FitId>(), Err(MalformedId { text: text.into() }));
        }
    }
}
