//! HTTP requests that the program makes.

use std::{net::IpAddr, time::Duration};

use reqwest::{Client, Response, Url, redirect};
use rustls::crypto::ring;

/// A client with a time limit for each request. It uses the system's certificate store, follows no
/// redirects, because they could send credentials elsewhere, and uses no proxy for a local URL.
pub(crate) fn client(timeout: Duration, url: &str) -> Result<Client, reqwest::Error> {
    // An error means that the process already has a provider.
    let _ = ring::default_provider().install_default();
    let mut builder = Client::builder()
        .timeout(timeout)
        .redirect(redirect::Policy::none())
        .user_agent(concat!("expertise/", env!("CARGO_PKG_VERSION")));
    let url = Url::parse(url).ok();
    if url.as_ref().is_some_and(|url| url.scheme() == "http") {
        // Without TLS, the client must work even if there is no certificate store.
        builder = builder.tls_certs_only([]);
    }
    if url.as_ref().and_then(Url::host_str).is_some_and(is_local) {
        builder = builder.no_proxy();
    }
    builder.build()
}

fn is_local(host: &str) -> bool {
    let address = host.trim_matches(['[', ']']).parse::<IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

/// The body of a response; `None` if it is larger than this.
pub(crate) async fn read(
    mut response: Response,
    max_bytes: usize,
) -> Result<Option<Vec<u8>>, reqwest::Error> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        if body.len() + chunk.len() > max_bytes {
            return Ok(None);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(Some(body))
}
