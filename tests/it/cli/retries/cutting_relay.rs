//! A relay that cuts connections.

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, copy, copy_bidirectional},
    net::TcpStream,
    runtime::Runtime,
};

/// What the relay does after it has cut the last connection that it is to cut.
#[derive(PartialEq, Eq)]
pub enum AfterCut {
    Listen,
    Close,
}

/// A relay to a server. It cuts as many connections as `errors` has numbers, each when an answer
/// comes back after so many that were errors.
pub fn cutting_relay(
    runtime: &Runtime,
    server: &str,
    errors: &'static [usize],
    after: AfterCut,
) -> String {
    let server = server.trim_start_matches("http://").to_owned();
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
            .await
            .expect("a port");
        let address = listener.local_addr().expect("its address");
        tokio::spawn(async move {
            let mut errors = errors.iter();
            while let Ok((mut client, _)) = listener.accept().await {
                let server_stream = TcpStream::connect(&server).await;
                let mut server_stream = server_stream.expect("the server listens");
                let Some(&relayed) = errors.next() else {
                    let both =
                        async move { copy_bidirectional(&mut client, &mut server_stream).await };
                    tokio::spawn(both);
                    continue;
                };
                relay_until_answered(&mut client, &mut server_stream, relayed).await;
                if errors.len() == 0 && after == AfterCut::Close {
                    // It stops listening before the connection ends.
                    drop(listener);
                    return;
                }
            }
        });
        format!("http://{address}")
    })
}

/// Relays both ways until an answer begins, after so many that were errors.
async fn relay_until_answered(
    client: &mut TcpStream,
    server_stream: &mut TcpStream,
    errors: usize,
) {
    const HEADERS: u8 = 1;
    let (mut asks, mut asked) = client.split();
    let (mut answers, mut answered) = server_stream.split();
    let asking = copy(&mut asks, &mut answered);
    let answering = async {
        let mut errors = errors;
        loop {
            let mut head = [0; 9];
            answers.read_exact(&mut head).await.expect("a frame");
            if head[3] == HEADERS {
                // An error is its headers and nothing else.
                match errors.checked_sub(1) {
                    Some(left) => errors = left,
                    None => return,
                }
            }
            let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
            let mut frame = vec![0; length as usize];
            answers.read_exact(&mut frame).await.expect("all of it");
            let sent = asked.write_all(&[&head[..], &frame].concat()).await;
            sent.expect("the client listens");
        }
    };
    tokio::select! {
        _ = asking => {}
        () = answering => {}
    }
}
