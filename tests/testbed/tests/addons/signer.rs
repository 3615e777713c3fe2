//! A signer of certificate requests that is neither Kubernetes nor OCM.

use anyhow::Result;
use jiff::{Timestamp, ToSpan};
use k8s_openapi::ByteString;
use rcgen::{KeyPair, SigningKey};
use serde_json::{Value, json};
use yasna::models::ObjectIdentifier;
use yasna::{ASN1Result, Tag, construct_der, parse_der};

/// Returns the `status.certificate` for a `CertificateSigningRequest`: a certificate as requested, for a day.
///
/// The subject is copied verbatim. OCM's agents check their certificates, request again if the subject differs, and request
/// several organizations in one attribute set, which certificate crates cannot write.
pub(crate) fn sign(request: &Value) -> Result<Value> {
    let pem = String::from_utf8(decode(&request["spec"]["request"])?)?;
    let body: String = pem.lines().filter(|line| !line.starts_with('-')).collect();
    let (subject, public_key) = parse_der(&decode(&json!(body))?, |reader| {
        reader.read_sequence(|reader| {
            let expected = reader.next().read_sequence(|reader| {
                reader.next().read_der()?;
                let expected = (reader.next().read_der()?, reader.next().read_der()?);
                reader.next().read_der()?;
                Ok(expected)
            })?;
            reader.next().read_der()?;
            reader.next().read_der()?;
            ASN1Result::Ok(expected)
        })
    })?;
    let body = body_of(&subject, &public_key)?;
    let signature = KeyPair::generate()?.sign(&body)?;
    let certificate = construct_der(|writer| {
        writer.write_sequence(|writer| {
            writer.next().write_der(&body);
            writer.next().write_der(&algorithm());
            writer.next().write_bitvec_bytes(&signature, signature.len() * 8);
        });
    });
    let text = encode(certificate)?;
    let lines: Vec<_> = text.as_bytes().chunks(64).map(String::from_utf8_lossy).collect();
    let pem = format!(
        "-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n",
        lines.join("\n")
    );
    Ok(json!(encode(pem.into_bytes())?))
}

fn body_of(subject: &[u8], public_key: &[u8]) -> Result<Vec<u8>> {
    let now = Timestamp::now();
    let (not_before, not_after) = (utc_time(now), utc_time(now.checked_add(24.hours())?));
    Ok(construct_der(|writer| {
        writer.write_sequence(|writer| {
            writer.next().write_tagged(Tag::context(0), |writer| writer.write_u8(2));
            writer.next().write_u8(1);
            writer.next().write_der(&algorithm());
            writer.next().write_der(subject);
            writer.next().write_sequence(|writer| {
                writer.next().write_der(&not_before);
                writer.next().write_der(&not_after);
            });
            writer.next().write_der(subject);
            writer.next().write_der(public_key);
        });
    }))
}

/// Returns ECDSA with SHA-256, the algorithm of rcgen's keys.
fn algorithm() -> Vec<u8> {
    construct_der(|writer| {
        writer.write_sequence(|writer| {
            let ecdsa_with_sha256 = ObjectIdentifier::from_slice(&[1, 2, 840, 10045, 4, 3, 2]);
            writer.next().write_oid(&ecdsa_with_sha256);
        });
    })
}

fn utc_time(time: Timestamp) -> Vec<u8> {
    let text = time.strftime("%y%m%d%H%M%SZ").to_string();
    [&[0x17, 13], text.as_bytes()].concat()
}

fn decode(base64: &Value) -> Result<Vec<u8>> {
    Ok(serde_json::from_value::<ByteString>(base64.clone())?.0)
}

fn encode(bytes: Vec<u8>) -> Result<String> {
    Ok(serde_json::from_value(serde_json::to_value(ByteString(bytes))?)?)
}
