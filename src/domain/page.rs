//! Pages of a listing.

/// Bytes of an encoded page beyond which it ends early, as stock clients
/// receive at most 4 MiB. One item always fits.
pub const PAGE_BYTES: usize = 3 * 1024 * 1024;

/// How many items a page holds at most: 1 to 500.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageSize(u32);

impl PageSize {
    /// What 0 stands for.
    pub const DEFAULT: u32 = 50;
    /// What anything above stands for.
    pub const MAX: u32 = 500;

    /// 0 means 50, above 500 means 500, negative is none.
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

/// Items of a listing, and whether more follow.
#[derive(Clone, Debug)]
pub struct Page<T> {
    /// The items, in the listing's order.
    pub items: Vec<T>,
    /// Whether there are items after these.
    pub more: bool,
}
