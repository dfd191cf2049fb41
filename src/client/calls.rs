//! The calls of the API, which the build script finds in the descriptors.

use prost::Message;

use crate::proto::v1;

/// A request of a call.
pub(crate) trait RpcRequest: Message + Clone + 'static {
    /// The response of the server.
    type Response: Message + Default + 'static;
    /// The path of the method.
    const PATH: &'static str;
}

/// A request for a page of a list.
pub(crate) trait PageRequest: RpcRequest {
    fn set_page_token(&mut self, token: String);

    /// The token of the next page; empty on the last page.
    fn next_page_token(page: &Self::Response) -> &str;
}

include!(concat!(env!("OUT_DIR"), "/calls.rs"));
