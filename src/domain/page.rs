//! Pages of a list.

/// A page ends early rather than exceed this many encoded bytes, as gRPC clients receive at
/// most 4 MiB by default. Every page has at least one item, however large.
pub const PAGE_BYTES: usize = 3 * 1024 * 1024;

/// How many items a page holds at most: 1 to 500.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageSize(u32);

impl PageSize {
    /// The size if 0 is requested.
    pub const DEFAULT: u32 = 50;
    /// The largest size; more is reduced to it.
    pub const MAX: u32 = 500;

    /// The size for a requested number; `None` if that is negative.
    pub fn new(size: i32) -> Option<Self> {
        let size = u32::try_from(size).ok()?;
        Some(Self(match size {
            0 => Self::DEFAULT,
            size => size.min(Self::MAX),
        }))
    }

    /// The number.
    pub fn get(self) -> u32 {
        self.0
    }
}

/// Items of a list, and whether more follow.
#[derive(Clone, Debug)]
pub struct Page<T> {
    /// The items, in the order of the list.
    pub items: Vec<T>,
    /// Whether there are items after these.
    pub more: bool,
}
