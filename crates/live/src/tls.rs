//! Both ends of TLS. The server shows its certificate with the authority's behind it, and asks for one without
//! insisting: people come with tokens, agents with certificates. Agents trust exactly one authority, known by its
//! fingerprint, and ask for the name that it gives servers rather than for an address that may change.

use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, ServerConfig,
    SignatureScheme,
};
use thiserror::Error as ThisError;

use crate::ca::{Authority, Identity, SERVER_NAME, fingerprint};

/// Why TLS cannot be set up.
#[derive(Debug, ThisError)]
pub enum TlsError {
    /// The library refused.
    #[error("TLS cannot be set up: {0}")]
    Rustls(#[from] Error),
    /// The authority's certificate does not do for checking clients.
    #[error("the authority's certificate cannot check agents: {0}")]
    Verifier(#[from] rustls::server::VerifierBuilderError),
    /// An agent's files.
    #[error("the agent's {0} is damaged; remove it and join again with a join token")]
    Damaged(&'static str),
}

/// The server's end.
pub fn server(authority: &Authority, identity: Identity) -> Result<Arc<ServerConfig>, TlsError> {
    let provider = Arc::new(ring::default_provider());
    let roots = Arc::new(roots(authority.certificate())?);
    let clients = WebPkiClientVerifier::builder_with_provider(roots, provider.clone())
        .allow_unauthenticated()
        .build()?;
    let versions = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    let mut config =
        versions.with_client_cert_verifier(clients).with_single_cert(identity.chain, identity.key)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// An agent's end: trusts the authority of this fingerprint, and shows a certificate (and key, both PEM) if it has one.
pub fn client(fingerprint: &str, identity: Option<(&str, &str)>) -> Result<Arc<ClientConfig>, TlsError> {
    let provider = Arc::new(ring::default_provider());
    let pinned = Arc::new(Pinned::new(fingerprint, provider.clone()));
    let versions = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    let config = versions.dangerous().with_custom_certificate_verifier(pinned);
    let Some((certificate, key)) = identity else {
        return Ok(Arc::new(config.with_no_client_auth()));
    };
    let certificate = CertificateDer::from_pem_slice(certificate.as_bytes());
    let certificate = certificate.map_err(|_| TlsError::Damaged("certificate"))?;
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).map_err(|_| TlsError::Damaged("key"))?;
    Ok(Arc::new(config.with_client_auth_cert(vec![certificate], key)?))
}

/// The fingerprint of an authority's certificate in PEM.
pub fn fingerprint_of_pem(pem: &str) -> Result<String, TlsError> {
    let der = CertificateDer::from_pem_slice(pem.as_bytes())
        .map_err(|_| TlsError::Damaged("copy of the authority"))?;
    Ok(fingerprint(&der))
}

/// Trusts servers of one authority, which they must show with their certificate.
#[derive(Debug)]
struct Pinned {
    fingerprint: String,
    provider: Arc<CryptoProvider>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl Pinned {
    fn new(fingerprint: &str, provider: Arc<CryptoProvider>) -> Pinned {
        let algorithms = provider.signature_verification_algorithms;
        Pinned { fingerprint: fingerprint.to_owned(), provider, algorithms }
    }
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        server: &CertificateDer<'_>,
        shown: &[CertificateDer<'_>],
        _address: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let ours = shown.iter().find(|shown| fingerprint(shown) == self.fingerprint);
        let ours = ours.ok_or(Error::InvalidCertificate(CertificateError::UnknownIssuer))?;
        let verifier =
            WebPkiServerVerifier::builder_with_provider(Arc::new(roots(ours)?), self.provider.clone());
        let verifier = verifier.build().map_err(|error| Error::General(error.to_string()))?;
        let name = ServerName::try_from(SERVER_NAME).map_err(|error| Error::General(error.to_string()))?;
        verifier.verify_server_cert(server, &[], &name, ocsp, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        rustls::crypto::verify_tls12_signature(message, certificate, signed, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        rustls::crypto::verify_tls13_signature(message, certificate, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

fn roots(certificate: &CertificateDer<'_>) -> Result<RootCertStore, Error> {
    let mut roots = RootCertStore::empty();
    roots.add(certificate.clone().into_owned())?;
    Ok(roots)
}
