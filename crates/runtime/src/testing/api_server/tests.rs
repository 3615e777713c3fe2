//! Checks that the fake gives the same responses that a real API server gave.

use super::ApiServer;
use std::path::Path;
use testbed::Transcript;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/conformance");

#[test]
fn answers_as_a_real_api_server_does() {
    let mut different = Vec::new();
    for mut transcript in Transcript::read_all(Path::new(FOLDER)).expect("they are there") {
        let mut server = ApiServer::default();
        while let Some(request) = transcript.next_request().expect("it can be read") {
            let (code, body) = server.send(&request);
            transcript.answered(code, &body.to_string()).expect("JSON");
        }
        different.extend(transcript.finish(false).err().map(|error| error.to_string()));
    }
    assert!(different.is_empty(), "{}", different.join("\n"));
}
