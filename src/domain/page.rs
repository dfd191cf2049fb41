//! Pages of a list.

/// A page ends before it exceeds this many encoded bytes, because gRPC clients accept at most 4 MiB
/// by default. Every page has at least one item, however large.
pub const PAGE_BYTES: usize = 3 * 1024 * 1024;

/// The maximum number of items on a page: 1 to 500.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageSize(u32);

impl PageSize {
    pub const DEFAULT: u32 = 50;
    /// The largest size. Larger requested sizes are reduced to it.
    pub const MAX: u32 = 500;
    pub const LARGEST: Self = Self(Self::MAX);

    /// The size for a requested number; `None` if it is negative.
    pub fn new(size: i32) -> Option<Self> {
        let size = u32::try_from(size).ok()?;
        Some(Self(match size {
            0 => Self::DEFAULT,
            size => size.min(Self::MAX),
        }))
    }

    pub fn get(self) -> u32 {
        self.0
    }

    /// The number of rows to read: one more, to find out whether another page follows.
    pub fn rows(self) -> u64 {
        u64::from(self.0) + 1
    }
}

#[derive(Clone, Debug)]
pub struct Page<T> {
    pub items: Vec<T>,
    pub more: bool,
}

impl<T> Page<T> {
    /// The page from at most [`PageSize::rows`] rows.
    pub fn from_rows(mut rows: Vec<T>, size: PageSize) -> Self {
        let more = rows.len() > size.get() as usize;
        rows.truncate(size.get() as usize);
        Self { items: rows, more }
    }

    /// Converts the items of the page.
    pub fn try_map<U, E>(self, item: impl FnMut(T) -> Result<U, E>) -> Result<Page<U>, E> {
        Ok(Page {
            items: self.items.into_iter().map(item).collect::<Result<_, E>>()?,
            more: self.more,
        })
    }
}
