//! Comments of the API as text on the page.

use std::collections::BTreeMap;

use anyhow::ensure;
use prost_reflect::{
    EnumDescriptor, EnumValueDescriptor, FieldDescriptor, FileDescriptor, MessageDescriptor,
    MethodDescriptor, OneofDescriptor, ServiceDescriptor,
};

use super::contract::Contract;

/// The prefix of reasons in the API, which errors leave out.
const REASON_PREFIX: &str = "ERROR_REASON_";

/// The comments of the API, and the headings that names in them link to.
pub struct Prose {
    comments: BTreeMap<(String, Vec<i32>), String>,
    headings: BTreeMap<String, String>,
}

impl Prose {
    pub fn read(contract: &Contract) -> Self {
        let mut comments = BTreeMap::new();
        for file in &contract.files {
            let locations = file.file_descriptor_proto().source_code_info.iter();
            for location in locations.flat_map(|info| &info.location) {
                let key = (file.name().to_owned(), location.path.clone());
                comments.insert(key, location.leading_comments().to_owned());
            }
        }
        let mut headings = BTreeMap::new();
        let services = contract.services.iter();
        let rpcs = services.flat_map(ServiceDescriptor::methods);
        headings.extend(rpcs.map(|rpc| (rpc.name().to_owned(), rpc.name().to_lowercase())));
        for kind in &contract.enums {
            let heading = kind.name().to_lowercase();
            headings.extend(
                kind.values()
                    .map(|v| (v.name().to_owned(), heading.clone())),
            );
        }
        // The zero value is never sent.
        let reasons = contract.reasons.values().filter(|v| v.number() != 0);
        headings.extend(reasons.map(|value| {
            let name = reason(value.name());
            (name.to_owned(), name.to_lowercase())
        }));
        Self { comments, headings }
    }

    /// The comment of a part of the API, with links to headings.
    ///
    /// # Errors
    /// When it has none.
    pub fn comment(&self, part: &impl Part) -> anyhow::Result<String> {
        Ok(self.linked(&self.plain(part)?))
    }

    /// The comment of a part of the API without links, in paragraphs.
    ///
    /// # Errors
    /// When it has none.
    pub fn plain(&self, part: &impl Part) -> anyhow::Result<String> {
        let (file, path) = part.location();
        let location = (file.name().to_owned(), path.to_vec());
        let comment = self.comments.get(&location).map_or("", String::as_str);
        // Leaves out directives for linters.
        let lines = comment.lines().map(str::trim);
        let lines = lines.filter(|line| !line.starts_with("buf:lint:"));
        let text = lines.collect::<Vec<_>>().join("\n");
        let paragraphs = text
            .split("\n\n")
            .map(|text| text.trim().replace('\n', " "));
        let paragraphs: Vec<_> = paragraphs.filter(|text| !text.is_empty()).collect();
        ensure!(
            !paragraphs.is_empty(),
            "no comment in {} at {path:?}",
            file.name()
        );
        Ok(paragraphs.join("\n\n"))
    }

    /// Text for a cell of a table, with links.
    pub fn cell(&self, text: &str) -> String {
        let text = self.linked(text).replace("\n\n", "<br><br>");
        text.replace('|', "\\|")
    }

    /// The text, with links from names outside of code to their headings.
    pub fn linked(&self, text: &str) -> String {
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let mut linked = String::new();
        for (index, part) in text.split('`').enumerate() {
            if index % 2 == 1 {
                linked.push_str(&format!("`{part}`"));
                continue;
            }
            let mut rest = part;
            while let Some(start) = rest.find(is_word) {
                let (before, word) = rest.split_at(start);
                let end = word.find(|c| !is_word(c)).unwrap_or(word.len());
                let (word, after) = word.split_at(end);
                linked.push_str(&before.replace('<', "&lt;"));
                linked.push_str(&self.link(word));
                rest = after;
            }
            linked.push_str(&rest.replace('<', "&lt;"));
        }
        linked
    }

    /// The word, as a link if it has a heading.
    fn link(&self, word: &str) -> String {
        self.headings.get(word).map_or_else(
            || word.to_owned(),
            |heading| format!("[{word}](#{heading})"),
        )
    }
}

/// The name of a reason in errors.
pub fn reason(name: &str) -> &str {
    name.strip_prefix(REASON_PREFIX).unwrap_or(name)
}

/// A part of the API that has a comment.
pub trait Part {
    /// Its file, and its path within the file.
    fn location(&self) -> (FileDescriptor, &[i32]);
}

macro_rules! parts {
    ($($descriptor:ty),+) => {
        $(impl Part for $descriptor {
            fn location(&self) -> (FileDescriptor, &[i32]) {
                (self.parent_file(), self.path())
            }
        })+
    };
}

parts!(
    ServiceDescriptor,
    MethodDescriptor,
    MessageDescriptor,
    FieldDescriptor,
    OneofDescriptor,
    EnumDescriptor,
    EnumValueDescriptor
);
