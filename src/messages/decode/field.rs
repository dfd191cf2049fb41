//! Decoders of single fields, which note violations.
//!
//! A decoder takes the sent value and its [`Field`]. If it refuses the value, it notes a violation
//! and returns `None`.

use crate::{
    domain::{
        etag::ExpectedEtag,
        external_id::ExternalId,
        ids::{ProductId, RequestId},
        page::PageSize,
        task::Published,
        text::{Body, BoundedText, NonBlankText, TextError},
        translation::Language,
        violation::{Path, Reason, Violations},
    },
    messages::message_json::enum_values,
};

/// Description of a violation of [`Reason::FieldRequired`].
pub const REQUIRED: &str = "is required";

/// Description of a malformed language tag.
pub const MALFORMED_LANGUAGE: &str = "is not a well-formed language tag, such as `pt-BR`";

/// A field of the request: its path, and the list of violations of the request.
pub struct Field<'a> {
    path: Path<'a>,
    violations: &'a mut Violations,
}

impl Violations {
    /// A field of the request message itself.
    pub fn at<'a>(&'a mut self, name: &'a str) -> Field<'a> {
        Field {
            path: Path::root(name),
            violations: self,
        }
    }
}

impl<'a> Field<'a> {
    /// A field of the message at this field.
    pub fn field<'b>(&'b mut self, name: &'b str) -> Field<'b> {
        Field {
            path: self.path.field(name),
            violations: self.violations,
        }
    }

    pub fn index(&mut self, index: usize) -> Field<'_> {
        Field {
            path: self.path.index(index),
            violations: self.violations,
        }
    }

    /// An entry of the map at this field.
    pub fn key<'b>(&'b mut self, key: &'b str) -> Field<'b> {
        Field {
            path: self.path.key(key),
            violations: self.violations,
        }
    }

    /// A member of the JSON object at this field.
    pub fn member<'b>(&'b mut self, key: &'b str) -> Field<'b> {
        Field {
            path: self.path.member(key),
            violations: self.violations,
        }
    }

    pub fn refuse(&mut self, reason: Reason, description: impl Into<String>) {
        self.violations.add(&self.path, reason, description);
    }

    /// Runs a check of the domain, and adds its violations.
    pub fn check<T>(&mut self, check: impl FnOnce(&Path<'a>, &mut Violations) -> T) -> T {
        check(&self.path, self.violations)
    }

    /// The value of this field, if it was sent and `decode` accepts it.
    pub fn optional<M, T>(
        self,
        sent: Option<M>,
        decode: impl FnOnce(M, Self) -> Option<T>,
    ) -> Option<T> {
        sent.and_then(|sent| decode(sent, self))
    }

    /// The value, or a violation if it is absent.
    pub fn required<T>(&mut self, value: Option<T>) -> Option<T> {
        if value.is_none() {
            self.refuse(Reason::FieldRequired, REQUIRED);
        }
        value
    }

    /// Whether a list of `count` elements is within its limit.
    pub fn at_most(&mut self, count: usize, max: usize) -> bool {
        if count > max {
            let description = format!("has {count} elements; at most {max} are allowed");
            self.refuse(Reason::TooManyElements, description);
        }
        count <= max
    }

    /// Refuses an empty list, with what it needs.
    pub fn not_empty<T>(&mut self, list: &[T], needed: &str) {
        if list.is_empty() {
            self.refuse(Reason::FieldRequired, needed);
        }
    }

    /// The elements of a list that `decode` accepts; `None` if there are more than `max`.
    pub fn elements<M, T>(
        &mut self,
        list: Vec<M>,
        max: usize,
        mut decode: impl FnMut(M, Field<'_>) -> Option<T>,
    ) -> Option<Vec<T>> {
        if !self.at_most(list.len(), max) {
            return None;
        }
        let list = list.into_iter().enumerate();
        let decoded = list.filter_map(|(index, element)| decode(element, self.index(index)));
        Some(decoded.collect())
    }

    /// The number of violations of the request so far.
    pub fn violation_count(&self) -> usize {
        self.violations.total()
    }

    /// The text, or `None` and a violation.
    pub fn accept<T>(&mut self, parsed: Result<T, TextError>) -> Option<T> {
        let refuse = |error: TextError| self.refuse(error.reason(), error.to_string());
        parsed.map_err(refuse).ok()
    }

    /// The parsed value of a required text, or `None` and a violation. `otherwise` is the error
    /// about a text that is not empty.
    pub fn parsed<T>(&mut self, text: &str, parsed: Option<T>, otherwise: &str) -> Option<T> {
        match (&parsed, text) {
            (Some(_), _) => {}
            (None, "") => self.refuse(Reason::FieldRequired, REQUIRED),
            (None, _) => self.refuse(Reason::FieldInvalid, otherwise),
        }
        parsed
    }

    /// The value of a number that is in its range, or `None` and a violation.
    pub fn in_range<T>(&mut self, value: Option<T>, otherwise: &str) -> Option<T> {
        if value.is_none() {
            self.refuse(Reason::FieldOutOfRange, otherwise);
        }
        value
    }

    /// The value that `known` returns for a number of the enum `name`. If it returns none, 0 counts
    /// as not sent. The violation for any other number lists the values as `kind`.
    pub fn enum_value<E>(
        &mut self,
        number: i32,
        kind: &str,
        name: &str,
        known: impl FnOnce(i32) -> Option<E>,
    ) -> Option<E> {
        let value = known(number);
        match (&value, number) {
            (Some(_), _) => {}
            (None, 0) => self.refuse(Reason::FieldRequired, REQUIRED),
            (None, _) => self.refuse(Reason::FieldInvalid, EnumValues { kind, name }),
        }
        value
    }
}

/// A required text of 1 to `MAX` code points.
pub fn non_blank_text<const MAX: usize>(
    text: String,
    mut field: Field<'_>,
) -> Option<NonBlankText<MAX>> {
    field.accept(NonBlankText::parse(text))
}

/// A text of a translation, of 1 to `MAX` code points. A text without a translation is left
/// out.
pub fn translated_text<const MAX: usize>(
    text: String,
    mut field: Field<'_>,
) -> Option<NonBlankText<MAX>> {
    if text.trim().is_empty() {
        let description = "must not be empty: leave it out if it is not translated";
        field.refuse(Reason::FieldRequired, description);
        return None;
    }
    non_blank_text(text, field)
}

/// A text of at most `MAX` code points.
pub fn text<const MAX: usize>(text: String, mut field: Field<'_>) -> Option<BoundedText<MAX>> {
    field.accept(BoundedText::parse(text))
}

pub fn external_id(id: String, mut field: Field<'_>) -> Option<ExternalId> {
    field.accept(ExternalId::parse(id))
}

pub fn body(text: String, mut field: Field<'_>) -> Option<Body> {
    field.accept(Body::parse(text))
}

/// The version that a caller expects, by its etag.
pub fn expected_etag(etag: &str, field: Field<'_>) -> ExpectedEtag {
    refuse_nul(etag, field);
    ExpectedEtag::parse(etag)
}

/// Notes a violation if the text contains U+0000. Returns whether the text is valid.
pub fn refuse_nul(text: &str, mut field: Field<'_>) -> bool {
    let refused = text.contains('\0');
    if refused {
        let nul = TextError::Nul;
        field.refuse(nul.reason(), nul.to_string());
    }
    !refused
}

/// A required id, which `parse` converts to its type.
pub fn guid<T>(id: &str, parse: fn(&str) -> Option<T>, mut field: Field<'_>) -> Option<T> {
    field.parsed(id, parse(id), "is not a hyphenated UUID")
}

/// An optional id.
pub fn optional_guid<T>(id: &str, parse: fn(&str) -> Option<T>, field: Field<'_>) -> Option<T> {
    if id.is_empty() {
        return None;
    }
    guid(id, parse, field)
}

/// The `request_id` of a create or an import; may be left out.
pub fn request_id(id: &str, violations: &mut Violations) -> Option<RequestId> {
    optional_guid(id, RequestId::parse, violations.at("request_id"))
}

pub fn product(id: i64, mut field: Field<'_>) -> Option<ProductId> {
    field.in_range(ProductId::new(id), "must be greater than 0")
}

pub fn required_product(id: Option<i64>, mut field: Field<'_>) -> Option<ProductId> {
    let id = field.required(id)?;
    product(id, field)
}

pub fn published(number: i32, mut field: Field<'_>) -> Option<Published> {
    field.in_range(Published::new(number), "must not be negative")
}

pub fn page_size(size: i32, violations: &mut Violations) -> Option<PageSize> {
    let mut field = violations.at("page_size");
    field.in_range(PageSize::new(size), "must not be negative")
}

/// Refuses names in `expand` other than `body`.
pub fn check_expand(expand: &[String], violations: &mut Violations) {
    let mut list = violations.at("expand");
    for (index, name) in expand.iter().enumerate() {
        if name != "body" {
            let mut element = list.index(index);
            element.refuse(Reason::FieldInvalid, "must be `body`");
        }
    }
}

pub fn language(tag: &str, mut field: Field<'_>) -> Option<Language> {
    field.parsed(tag, Language::parse(tag), MALFORMED_LANGUAGE)
}

pub fn languages(tags: Vec<String>, max: usize, mut list: Field<'_>) -> Vec<Language> {
    list.elements(tags, max, |tag, field| language(&tag, field))
        .unwrap_or_default()
}

/// The description of a number that is not a value of the enum `name`. It lists the values, and is
/// created only if the violation is kept.
struct EnumValues<'a> {
    kind: &'a str,
    name: &'a str,
}

impl From<EnumValues<'_>> for String {
    fn from(EnumValues { kind, name }: EnumValues<'_>) -> Self {
        let values = enum_values(name).into_iter();
        let values: Vec<String> = values
            .map(|(name, number)| format!("{name} ({number})"))
            .collect();
        format!("is not {kind}: {}", values.join(", "))
    }
}

/// The text if it was sent; an empty one counts as not sent.
pub fn sent_text<T: AsRef<str>>(text: T) -> Option<T> {
    (!text.as_ref().is_empty()).then_some(text)
}
