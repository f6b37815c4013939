//! Columns of history tables: their CQL types, their values, and the Rust types that stand for them.

use super::time::{Day, Timestamp};
use std::collections::BTreeSet;
use std::fmt;
use std::net::IpAddr;
use uuid::Uuid;

/// The type of a column, named as in CQL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ColumnType {
    /// `text`: UTF-8
    Text,
    /// `int`: 32 bits, with a sign
    Int,
    /// `bigint`: 64 bits, with a sign
    BigInt,
    /// `smallint`: 16 bits, with a sign
    SmallInt,
    /// `tinyint`: 8 bits, with a sign
    TinyInt,
    /// `float`, 32 bits, finite
    Float,
    /// `double`, 64 bits, finite
    Double,
    /// `boolean`: true or false
    Boolean,
    /// `timestamp`, milliseconds since 1970
    Timestamp,
    /// `uuid`: of any version
    Uuid,
    /// `inet`: an address of IPv4 or IPv6, without a port
    Inet,
    /// `blob`: any bytes
    Blob,
    /// `set<text>`: distinct texts, sorted; an empty one is absent
    TextSet,
    /// `frozen<list<frozen<tuple<…>>>>`: one cell, so that writing it again does not double it
    Tuples(&'static [ColumnType]),
}

impl fmt::Display for ColumnType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            ColumnType::Text => "text",
            ColumnType::Int => "int",
            ColumnType::BigInt => "bigint",
            ColumnType::SmallInt => "smallint",
            ColumnType::TinyInt => "tinyint",
            ColumnType::Float => "float",
            ColumnType::Double => "double",
            ColumnType::Boolean => "boolean",
            ColumnType::Timestamp => "timestamp",
            ColumnType::Uuid => "uuid",
            ColumnType::Inet => "inet",
            ColumnType::Blob => "blob",
            ColumnType::TextSet => "set<text>",
            ColumnType::Tuples(elements) => {
                let elements: Vec<_> = elements.iter().map(ToString::to_string).collect();
                return write!(f, "frozen<list<frozen<tuple<{}>>>>", elements.join(", "));
            }
        };
        f.write_str(name)
    }
}

/// A value of a column.
#[derive(Clone, Debug, PartialEq, PartialOrd)]
#[non_exhaustive]
#[expect(missing_docs, reason = "each variant is the column type of its name")]
pub enum Value {
    Text(String),
    Int(i32),
    BigInt(i64),
    SmallInt(i16),
    TinyInt(i8),
    Float(f32),
    Double(f64),
    Boolean(bool),
    Timestamp(i64),
    Uuid(Uuid),
    Inet(IpAddr),
    Blob(Vec<u8>),
    TextSet(BTreeSet<String>),
    Tuples(Vec<Vec<Value>>),
}

impl Value {
    /// Whether it is a value of this type.
    pub fn is_of(&self, expected: ColumnType) -> bool {
        match (self, expected) {
            (Value::Text(_), ColumnType::Text)
            | (Value::Int(_), ColumnType::Int)
            | (Value::BigInt(_), ColumnType::BigInt)
            | (Value::SmallInt(_), ColumnType::SmallInt)
            | (Value::TinyInt(_), ColumnType::TinyInt)
            | (Value::Float(_), ColumnType::Float)
            | (Value::Double(_), ColumnType::Double)
            | (Value::Boolean(_), ColumnType::Boolean)
            | (Value::Timestamp(_), ColumnType::Timestamp)
            | (Value::Uuid(_), ColumnType::Uuid)
            | (Value::Inet(_), ColumnType::Inet)
            | (Value::Blob(_), ColumnType::Blob)
            | (Value::TextSet(_), ColumnType::TextSet) => true,
            (Value::Tuples(tuples), ColumnType::Tuples(types)) => tuples.iter().all(|tuple| {
                tuple.len() == types.len() && tuple.iter().zip(types).all(|(value, of)| value.is_of(*of))
            }),
            _ => false,
        }
    }

    /// Bytes of its content, as counted against the limits of a row.
    pub fn size_bytes(&self) -> usize {
        match self {
            Value::Text(text) => text.len(),
            Value::Blob(bytes) => bytes.len(),
            Value::TextSet(texts) => texts.iter().map(|text| text.len() + 4).sum(),
            Value::Tuples(tuples) => tuples.iter().flatten().map(|value| value.size_bytes() + 4).sum(),
            Value::Uuid(_) | Value::Inet(_) => 16,
            _ => 8,
        }
    }

    /// Whether it holds a float that is infinite or not a number.
    pub fn is_non_finite(&self) -> bool {
        match self {
            Value::Float(float) => !float.is_finite(),
            Value::Double(double) => !double.is_finite(),
            Value::Tuples(tuples) => tuples.iter().flatten().any(Value::is_non_finite),
            _ => false,
        }
    }
}

/// A Rust type that stands for a column. `Option` of one is a column that may be absent.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not the type of a history column",
    note = "columns are String, i32, i64, i16, i8, f32, f64, bool, Timestamp, Day, Uuid, IpAddr, Vec<u8>, BTreeSet<String>, Vec of tuples, types of `text_enum!`, and Option of these"
)]
pub trait Column: Sized + Send + Sync + 'static {
    /// The type of the column in CQL, which also says how the embedded store encodes it.
    const TYPE: ColumnType;
    /// Whether a row may lack it.
    const OPTIONAL: bool = false;

    /// The stored value; `None` if the column is absent.
    fn into_value(self) -> Option<Value>;

    /// Reads a stored value; the error says what is wrong with it.
    fn from_value(value: Option<Value>) -> Result<Self, String>;
}

macro_rules! plain_columns {
    ($($type:ty => $variant:ident;)*) => { $(
        impl Column for $type {
            const TYPE: ColumnType = ColumnType::$variant;

            fn into_value(self) -> Option<Value> {
                Some(Value::$variant(self))
            }

            fn from_value(value: Option<Value>) -> Result<Self, String> {
                match value {
                    Some(Value::$variant(value)) => Ok(value),
                    other => Err(unexpected(Self::TYPE, other.as_ref())),
                }
            }
        }
    )* };
}

plain_columns! {
    String => Text;
    i32 => Int;
    i64 => BigInt;
    i16 => SmallInt;
    i8 => TinyInt;
    f32 => Float;
    f64 => Double;
    bool => Boolean;
    Uuid => Uuid;
    IpAddr => Inet;
    Vec<u8> => Blob;
}

/// What is wrong with a value of another type; the value itself may be private and is not printed.
pub(crate) fn unexpected(expected: ColumnType, found: Option<&Value>) -> String {
    match found {
        None => format!("it is absent, expected {expected}"),
        Some(_) => format!("it is of another type, expected {expected}"),
    }
}

impl Column for Timestamp {
    const TYPE: ColumnType = ColumnType::Timestamp;

    fn into_value(self) -> Option<Value> {
        Some(Value::Timestamp(self.0))
    }

    fn from_value(value: Option<Value>) -> Result<Self, String> {
        match value {
            Some(Value::Timestamp(ms)) => Ok(Timestamp(ms)),
            other => Err(unexpected(Self::TYPE, other.as_ref())),
        }
    }
}

impl Column for Day {
    const TYPE: ColumnType = ColumnType::Text;

    fn into_value(self) -> Option<Value> {
        Some(Value::Text(self.to_string()))
    }

    fn from_value(value: Option<Value>) -> Result<Self, String> {
        let text = String::from_value(value)?;
        text.parse().map_err(|error: super::time::InvalidDay| error.to_string())
    }
}

/// An empty set is stored as an absent column, as CQL does.
impl Column for BTreeSet<String> {
    const TYPE: ColumnType = ColumnType::TextSet;
    const OPTIONAL: bool = true;

    fn into_value(self) -> Option<Value> {
        (!self.is_empty()).then_some(Value::TextSet(self))
    }

    fn from_value(value: Option<Value>) -> Result<Self, String> {
        match value {
            None => Ok(BTreeSet::new()),
            Some(Value::TextSet(texts)) => Ok(texts),
            other => Err(unexpected(Self::TYPE, other.as_ref())),
        }
    }
}

impl<C: Column> Column for Option<C> {
    const TYPE: ColumnType = C::TYPE;
    const OPTIONAL: bool = true;

    fn into_value(self) -> Option<Value> {
        self.and_then(C::into_value)
    }

    fn from_value(value: Option<Value>) -> Result<Self, String> {
        value.map(|value| C::from_value(Some(value))).transpose()
    }
}

macro_rules! tuple_columns {
    ($($element:ident)+) => {
        impl<$($element: Column),+> Column for Vec<($($element,)+)> {
            const TYPE: ColumnType = {
                $(assert!(!$element::OPTIONAL, "an element of a tuple must not be optional");)+
                ColumnType::Tuples(&[$($element::TYPE),+])
            };

            #[allow(non_snake_case)]
            fn into_value(self) -> Option<Value> {
                let tuple = |($($element,)+): ($($element,)+)| {
                    // Elements are not optional, so each of them has a value.
                    [$($element.into_value()),+].into_iter().flatten().collect()
                };
                Some(Value::Tuples(self.into_iter().map(tuple).collect()))
            }

            fn from_value(value: Option<Value>) -> Result<Self, String> {
                let Some(Value::Tuples(tuples)) = value else {
                    return Err(unexpected(Self::TYPE, value.as_ref()));
                };
                let tuple = |elements: Vec<Value>| {
                    let mut elements = elements.into_iter();
                    Ok(($($element::from_value(elements.next())?,)+))
                };
                tuples.into_iter().map(tuple).collect()
            }
        }
    };
}

tuple_columns!(A B);
tuple_columns!(A B C);
tuple_columns!(A B C D);

/// Declares an enum that is stored as text. A text that is none of its is an error when a row is read.
///
/// ```
/// use emberkeep_schema::{Column, Value, text_enum};
///
/// text_enum! {
///     /// How a hit landed.
///     pub enum HitType { Normal = "normal", Critical = "critical" }
/// }
/// assert_eq!(HitType::Critical.into_value(), Some(Value::Text("critical".into())));
/// let error = HitType::from_value(Some(Value::Text("soft".into()))).unwrap_err();
/// assert_eq!(error, "\"soft\" is none of the texts of HitType: normal, critical");
/// ```
#[macro_export]
macro_rules! text_enum {
    ($(#[$attribute:meta])* $vis:vis enum $name:ident {
        $($(#[$variant_attribute:meta])* $variant:ident = $text:literal),+ $(,)?
    }) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        $vis enum $name { $(
            #[doc = concat!("`", $text, "`")]
            $(#[$variant_attribute])*
            $variant,
        )+ }

        impl $name {
            /// The text that is stored.
            $vis const fn text(self) -> &'static str {
                match self { $($name::$variant => $text),+ }
            }
        }

        impl $crate::Column for $name {
            const TYPE: $crate::ColumnType = $crate::ColumnType::Text;

            fn into_value(self) -> ::core::option::Option<$crate::Value> {
                ::core::option::Option::Some($crate::Value::Text(self.text().to_owned()))
            }

            fn from_value(
                value: ::core::option::Option<$crate::Value>,
            ) -> ::core::result::Result<Self, ::std::string::String> {
                let text = <::std::string::String as $crate::Column>::from_value(value)?;
                match text.as_str() {
                    $($text => ::core::result::Result::Ok($name::$variant),)+
                    other => {
                        let shown: ::std::string::String = other.chars().take(32).collect();
                        ::core::result::Result::Err(::std::format!(
                            "{:?} is none of the texts of {}: {}",
                            shown, stringify!($name), [$($text),+].join(", "),
                        ))
                    }
                }
            }
        }
    };
}
