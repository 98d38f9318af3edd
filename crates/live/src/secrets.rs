//! Users' secrets: values that their jobs are given and nobody else sees. They are stored encrypted (ChaCha20-Poly1305,
//! a random nonce for each, bound to user and name) under a key in a file that only the server reads, and are opened
//! only when a job starts. They are in no journal, event, log or answer.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use thiserror::Error;

use crate::clock::{now_us, seconds};
use crate::store::secrets::{SealedRow, SecretStore};
use crate::views::SecretView;
use crate::wire::{Handed, SecretValue, TaskSecret};

/// Bytes of one value.
pub const VALUE_MAX: usize = 64 << 10;
/// Secrets of one user.
pub const COUNT_MAX: usize = 100;
/// Bytes of all the secrets that one job is given: they travel in one message, which has a limit.
pub const JOB_BYTES_MAX: usize = 256 << 10;

const KEY_FILE: &str = "secrets.key";
const KEY_BYTES: usize = 32;

/// Why secrets could not be read or written.
#[derive(Debug, Error)]
pub enum SecretsError {
    /// The key file.
    #[error(
        "the key of the secrets, {path}, cannot be read or made ({source}); check the disk and the file's owner"
    )]
    Key {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Others could read the key.
    #[error("others may read the key of the secrets; run: chmod 600 {0}")]
    Open(PathBuf),
    /// The key file holds something else.
    #[error(
        "{0} is not a key of {KEY_BYTES} bytes; put back the right one, or remove it and set all secrets again"
    )]
    Damaged(PathBuf),
    /// The database.
    #[error(
        "the secrets in {path} cannot be read or written ({source}); check the disk and the file's owner"
    )]
    Store {
        /// Which.
        path: PathBuf,
        /// Why.
        source: rusqlite::Error,
    },
    /// A value that the key does not open.
    #[error("the secret {0} cannot be decrypted with the server's key; set it again: yard secret set {0}")]
    Sealed(String),
    /// The user has too many.
    #[error("you have {COUNT_MAX} secrets, the maximum; remove one first: yard secret rm NAME")]
    TooMany,
}

impl From<(PathBuf, rusqlite::Error)> for SecretsError {
    fn from((path, source): (PathBuf, rusqlite::Error)) -> SecretsError {
        SecretsError::Store { path, source }
    }
}

/// All users' secrets.
#[derive(Debug)]
pub struct Secrets {
    store: SecretStore,
    key: LessSafeKey,
}

impl Secrets {
    /// Those of a data folder. The key is made where there is none.
    pub fn open(data: &Path) -> Result<Secrets, SecretsError> {
        let path = data.join(KEY_FILE);
        let error = |source| SecretsError::Key { path: path.clone(), source };
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(data).map_err(error)?;
        let bytes = match read_key(&path) {
            Err(SecretsError::Key { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                make_key(&path).map_err(error)?;
                read_key(&path)?
            }
            read => read?,
        };
        let key =
            UnboundKey::new(&CHACHA20_POLY1305, &bytes).map_err(|_| SecretsError::Damaged(path.clone()))?;
        Ok(Secrets { store: SecretStore::open(&data.join("yard.db"))?, key: LessSafeKey::new(key) })
    }

    /// Keeps a value, in place of an older one.
    pub fn set(&self, user: &str, name: &str, value: &SecretValue) -> Result<(), SecretsError> {
        let (mut nonce, mut sealed) = ([0; 12], value.0.clone().into_bytes());
        getrandom::fill(&mut nonce).expect("the system gives random bytes");
        let aad = Aad::from(bound_to(user, name));
        let encrypted =
            self.key.seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), aad, &mut sealed);
        encrypted.map_err(|_| SecretsError::Sealed(name.to_owned()))?;
        let (user, name, bytes) = (user.to_owned(), name.to_owned(), value.0.len() as u64);
        let row = SealedRow { user, name, nonce, sealed, bytes, set_us: now_us() };
        if self.store.put(&row, COUNT_MAX)? { Ok(()) } else { Err(SecretsError::TooMany) }
    }

    /// A user's secrets by name, without their values.
    pub fn list(&self, user: &str) -> Result<Vec<SecretView>, SecretsError> {
        let view =
            |row: SealedRow| SecretView { name: row.name, bytes: row.bytes, set_at: seconds(row.set_us) };
        Ok(self.store.of_user(user)?.into_iter().map(view).collect())
    }

    /// Takes a secret away; whether there was one.
    pub fn remove(&self, user: &str, name: &str) -> Result<bool, SecretsError> {
        Ok(self.store.remove(user, name)?)
    }

    /// Why a user's job could not be given these now, if so.
    pub fn lacks(
        &self,
        user: &str,
        wanted: &BTreeMap<String, Handed>,
    ) -> Result<Option<String>, SecretsError> {
        if wanted.is_empty() {
            return Ok(None);
        }
        let known: BTreeMap<_, _> =
            self.store.of_user(user)?.into_iter().map(|row| (row.name, row.bytes)).collect();
        let mut sum = 0;
        for name in wanted.keys() {
            match known.get(name) {
                Some(bytes) => sum += bytes,
                None => return Ok(Some(missing(user, name))),
            }
        }
        Ok((sum > JOB_BYTES_MAX as u64).then(|| too_large(sum)))
    }

    /// What a user's job is given, with the values of this moment; else why it cannot start.
    pub(crate) fn hand_over(
        &self,
        user: &str,
        wanted: &BTreeMap<String, Handed>,
    ) -> Result<Vec<TaskSecret>, String> {
        let (mut given, mut sum) = (Vec::with_capacity(wanted.len()), 0);
        for (name, handed) in wanted {
            let row = self.store.get(user, name).map_err(|error| SecretsError::from(error).to_string())?;
            let row = row.ok_or_else(|| missing(user, name))?;
            let value = self.unseal(user, name, row).map_err(|error| error.to_string())?;
            sum += value.0.len() as u64;
            given.push(TaskSecret { name: name.clone(), handed: *handed, value });
        }
        if sum > JOB_BYTES_MAX as u64 { Err(too_large(sum)) } else { Ok(given) }
    }

    fn unseal(&self, user: &str, name: &str, row: SealedRow) -> Result<SecretValue, SecretsError> {
        let (nonce, mut bytes) = (Nonce::assume_unique_for_key(row.nonce), row.sealed);
        let wrong = || SecretsError::Sealed(name.to_owned());
        let aad = Aad::from(bound_to(user, name));
        let length = self.key.open_in_place(nonce, aad, &mut bytes).map_err(|_| wrong())?.len();
        bytes.truncate(length);
        String::from_utf8(bytes).map(SecretValue).map_err(|_| wrong())
    }
}

fn missing(user: &str, name: &str) -> String {
    format!("{user} has no secret {name}; set it first: yard secret set {name}")
}

fn too_large(sum: u64) -> String {
    format!("its secrets have {sum} bytes, more than {JOB_BYTES_MAX}; use fewer or shorter ones")
}

/// What a value belongs to. The length of the first part tells both apart.
fn bound_to(user: &str, name: &str) -> Vec<u8> {
    let length = (user.len() as u64).to_be_bytes();
    [length.as_slice(), user.as_bytes(), name.as_bytes()].concat()
}

fn read_key(path: &Path) -> Result<[u8; KEY_BYTES], SecretsError> {
    let error = |source| SecretsError::Key { path: path.to_owned(), source };
    let file = File::open(path).map_err(error)?;
    if file.metadata().map_err(error)?.permissions().mode() & 0o077 != 0 {
        return Err(SecretsError::Open(path.to_owned()));
    }
    let mut bytes = Vec::new();
    file.take(KEY_BYTES as u64 + 1).read_to_end(&mut bytes).map_err(error)?;
    bytes.try_into().map_err(|_| SecretsError::Damaged(path.to_owned()))
}

/// Makes a key whole or not at all, and never in place of another.
fn make_key(path: &Path) -> io::Result<()> {
    let mut bytes = [0; KEY_BYTES];
    getrandom::fill(&mut bytes).expect("the system gives random bytes");
    let part = path.with_extension("key.part");
    let _ = std::fs::remove_file(&part);
    let mut file = File::options().write(true).create_new(true).mode(0o600).open(&part)?;
    file.write_all(&bytes)?;
    file.sync_all()?;
    let linked = std::fs::hard_link(&part, path);
    std::fs::remove_file(&part)?;
    linked
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    const VALUE: &str = "hunter2-but-much-longer-and-unlike-anything-else";

    fn value(text: &str) -> SecretValue {
        SecretValue(text.to_owned())
    }

    fn wants(name: &str) -> BTreeMap<String, Handed> {
        [(name.to_owned(), Handed::Env)].into()
    }

    #[test]
    fn a_secret_is_its_owners_alone_and_outlives_a_restart() {
        let scratch = Scratch::new();
        let secrets = Secrets::open(scratch.path()).unwrap();
        secrets.set("ada", "KEY", &value("old")).unwrap();
        secrets.set("ada", "KEY", &value(VALUE)).unwrap();
        drop(secrets);
        let secrets = Secrets::open(scratch.path()).unwrap();
        let given = secrets.hand_over("ada", &wants("KEY")).unwrap();
        assert_eq!(given, [TaskSecret { name: "KEY".into(), handed: Handed::Env, value: value(VALUE) }]);
        assert!(!format!("{given:?} {secrets:?}").contains(VALUE), "it is not shown by accident");
        let listed = secrets.list("ada").unwrap();
        assert_eq!((listed.len(), listed[0].name.as_str(), listed[0].bytes), (1, "KEY", VALUE.len() as u64));
        assert!(secrets.list("bob").unwrap().is_empty());
        assert!(secrets.hand_over("bob", &wants("KEY")).unwrap_err().contains("bob has no secret KEY"));
        assert!(secrets.lacks("bob", &wants("KEY")).unwrap().is_some());
        assert_eq!(secrets.lacks("ada", &wants("KEY")).unwrap(), None);
        assert!(!secrets.remove("bob", "KEY").unwrap());
        assert!(secrets.remove("ada", "KEY").unwrap());
        assert!(secrets.hand_over("ada", &wants("KEY")).is_err());
    }

    #[test]
    fn the_value_is_in_no_file() {
        let scratch = Scratch::new();
        let secrets = Secrets::open(scratch.path()).unwrap();
        secrets.set("ada", "KEY", &value(VALUE)).unwrap();
        let mut files = 0;
        for file in std::fs::read_dir(scratch.path()).unwrap() {
            let bytes = std::fs::read(file.unwrap().path()).unwrap();
            assert!(!bytes.windows(VALUE.len()).any(|window| window == VALUE.as_bytes()));
            files += 1;
        }
        assert!(files >= 2, "the key and the database");
    }

    #[test]
    fn a_row_that_was_moved_to_another_user_or_name_does_not_open() {
        let scratch = Scratch::new();
        let secrets = Secrets::open(scratch.path()).unwrap();
        secrets.set("ada", "KEY", &value(VALUE)).unwrap();
        let row = secrets.store.get("ada", "KEY").unwrap().unwrap();
        for (user, name) in [("bob", "KEY"), ("ada", "OTHER"), ("adaK", "EY")] {
            let moved = SealedRow { user: user.into(), name: name.into(), ..row.clone() };
            assert!(secrets.store.put(&moved, COUNT_MAX).unwrap());
            let refused = secrets.hand_over(user, &wants(name)).unwrap_err();
            assert!(refused.contains("cannot be decrypted"), "{refused}");
        }
        let mut flipped = row;
        flipped.sealed[0] ^= 1;
        secrets.store.put(&flipped, COUNT_MAX).unwrap();
        assert!(secrets.hand_over("ada", &wants("KEY")).is_err(), "nor one that was changed");
    }

    #[test]
    fn a_database_without_its_key_is_of_no_use() {
        let (scratch, thief) = (Scratch::new(), Scratch::new());
        let secrets = Secrets::open(scratch.path()).unwrap();
        secrets.set("ada", "KEY", &value(VALUE)).unwrap();
        drop(secrets);
        std::fs::copy(scratch.path().join("yard.db"), thief.path().join("yard.db")).unwrap();
        let stolen = Secrets::open(thief.path()).unwrap();
        assert!(stolen.hand_over("ada", &wants("KEY")).unwrap_err().contains("cannot be decrypted"));
    }

    #[test]
    fn the_key_is_private_and_whole() {
        let scratch = Scratch::new();
        let path = scratch.path().join(KEY_FILE);
        drop(Secrets::open(scratch.path()).unwrap());
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let before = std::fs::read(&path).unwrap();
        drop(Secrets::open(scratch.path()).unwrap());
        assert_eq!(std::fs::read(&path).unwrap(), before, "it is made once");
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o640)).unwrap();
        assert!(matches!(Secrets::open(scratch.path()), Err(SecretsError::Open(_))));
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
        std::fs::write(&path, "short").unwrap();
        assert!(matches!(Secrets::open(scratch.path()), Err(SecretsError::Damaged(_))));
    }

    #[test]
    fn a_user_has_only_so_many_and_a_job_only_so_much() {
        let scratch = Scratch::new();
        let secrets = Secrets::open(scratch.path()).unwrap();
        for number in 0..COUNT_MAX {
            secrets.set("ada", &format!("S{number}"), &value(&"x".repeat(VALUE_MAX))).unwrap();
        }
        assert!(matches!(secrets.set("ada", "ONE_MORE", &value("x")), Err(SecretsError::TooMany)));
        secrets.set("ada", "S0", &value("new")).unwrap();
        secrets.set("bob", "S0", &value("his")).unwrap();
        let many: BTreeMap<_, _> = (1..6).map(|number| (format!("S{number}"), Handed::File)).collect();
        assert!(secrets.lacks("ada", &many).unwrap().unwrap().contains("more than 262144"));
        assert!(secrets.hand_over("ada", &many).unwrap_err().contains("more than 262144"));
    }
}
