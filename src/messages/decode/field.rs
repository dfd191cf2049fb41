//! Decoders of single fields, and where they note what is wrong.
//!
//! A decoder takes what was sent and its [`Field`]. When the value is refused it
//! notes a violation there and returns `None`.

use crate::domain::{
    etag::ExpectedEtag,
    external_id::ExternalId,
    ids::{ProductId, RequestId},
    page::PageSize,
    task::Published,
    text::{Body, BoundedText, NonBlankText, TextError},
    translation::Language,
    violation::{Path, Reason, Violations},
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

impl<'a> Field<'a> {
    /// A field of the request message itself.
    pub fn root(name: &'a str, violations: &'a mut Violations) -> Self {
        Self {
            path: Path::root(name),
            violations,
        }
    }

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

    /// What a check of the domain returns, which adds its violations.
    pub fn check<T>(&mut self, check: impl FnOnce(&Path<'a>, &mut Violations) -> T) -> T {
        check(&self.path, self.violations)
    }

    /// The value if it is there, else a violation.
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

    /// How many violations the request has so far.
    pub fn violation_count(&self) -> usize {
        self.violations.total()
    }

    /// The text, or `None` and a violation.
    pub fn accept<T>(&mut self, parsed: Result<T, TextError>) -> Option<T> {
        let refuse = |error: TextError| self.refuse(error.reason(), error.to_string());
        parsed.map_err(refuse).ok()
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

/// Notes a violation if the text contains U+0000. Returns whether it is free of it.
pub fn refuse_nul(text: &str, mut field: Field<'_>) -> bool {
    let refused = text.contains('\0');
    if refused {
        let nul = TextError::Nul;
        field.refuse(nul.reason(), nul.to_string());
    }
    !refused
}

/// A required id; `parse` is that of its type.
pub fn guid<T>(id: &str, parse: fn(&str) -> Option<T>, mut field: Field<'_>) -> Option<T> {
    let (reason, description) = match id {
        "" => (Reason::FieldRequired, REQUIRED),
        _ => (Reason::FieldInvalid, "is not a hyphenated UUID"),
    };
    let parsed = parse(id);
    if parsed.is_none() {
        field.refuse(reason, description);
    }
    parsed
}

/// An id that may be left out.
pub fn optional_guid<T>(id: &str, parse: fn(&str) -> Option<T>, field: Field<'_>) -> Option<T> {
    if id.is_empty() {
        return None;
    }
    guid(id, parse, field)
}

/// The `request_id` of a create or an import; may be left out.
pub fn request_id(id: &str, violations: &mut Violations) -> Option<RequestId> {
    optional_guid(id, RequestId::parse, Field::root("request_id", violations))
}

pub fn product(id: Option<i64>, mut field: Field<'_>) -> Option<ProductId> {
    let id = field.required(id)?;
    let product = ProductId::new(id);
    if product.is_none() {
        field.refuse(Reason::FieldOutOfRange, "must be greater than 0");
    }
    product
}

pub fn published(number: i32, mut field: Field<'_>) -> Option<Published> {
    let published = Published::new(number);
    if published.is_none() {
        field.refuse(Reason::FieldOutOfRange, "must not be negative");
    }
    published
}

pub fn page_size(size: i32, violations: &mut Violations) -> Option<PageSize> {
    let page_size = PageSize::new(size);
    if page_size.is_none() {
        let mut field = Field::root("page_size", violations);
        field.refuse(Reason::FieldOutOfRange, "must not be negative");
    }
    page_size
}

/// Refuses names in `expand` other than `body`.
pub fn check_expand(expand: &[String], violations: &mut Violations) {
    let mut list = Field::root("expand", violations);
    for (index, name) in expand.iter().enumerate() {
        if name != "body" {
            let mut element = list.index(index);
            element.refuse(Reason::FieldInvalid, "must be `body`");
        }
    }
}

pub fn language(tag: &str, mut field: Field<'_>) -> Option<Language> {
    let language = Language::parse(tag);
    if language.is_none() {
        match tag {
            "" => field.refuse(Reason::FieldRequired, REQUIRED),
            _ => field.refuse(Reason::FieldInvalid, MALFORMED_LANGUAGE),
        }
    }
    language
}

pub fn languages(tags: &[String], max: usize, mut list: Field<'_>) -> Vec<Language> {
    if !list.at_most(tags.len(), max) {
        return Vec::new();
    }
    let tags = tags.iter().enumerate();
    let languages = tags.filter_map(|(index, tag)| language(tag, list.index(index)));
    languages.collect()
}

/// A value of an enum. The violation of another number lists these `values`.
pub fn enum_value<E, const N: usize>(
    number: i32,
    kind: &str,
    values: [E; N],
    name: fn(&E) -> &'static str,
    field: &mut Field<'_>,
) -> Option<E>
where
    E: TryFrom<i32> + Into<i32> + Copy,
{
    let value = E::try_from(number).ok();
    if value.is_none() {
        let values = values.map(|value| (name(&value), value.into()));
        field.refuse(Reason::FieldInvalid, not_a_value(kind, values));
    }
    value
}

/// The description of a number that is no value of an enum: it lists those that are.
pub fn not_a_value<const N: usize>(kind: &str, values: [(&str, i32); N]) -> String {
    let values = values.map(|(name, number)| format!("{name} ({number})"));
    format!("is not {kind}: {}", values.join(", "))
}

/// The text if it was sent; an empty one counts as not sent.
pub fn sent_text(text: String) -> Option<String> {
    (!text.is_empty()).then_some(text)
}
