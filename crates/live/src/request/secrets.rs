//! What a job may ask for of its user's secrets: which names they have, and which of them may be variables.

use super::JobRequest;
use super::check::{Problem, problem};
use crate::wire::Handed;

/// Characters of a name.
pub const NAME_MAX: usize = 128;
/// Secrets of one job.
pub const COUNT_MAX: usize = 32;

/// Variables whose values are the scheduler's or the system's to choose: a secret there would be lost, or would choose
/// what else is loaded or run.
const RESERVED: [&str; 14] = [
    "PATH",
    "HOME",
    "SHELL",
    "USER",
    "LOGNAME",
    "IFS",
    "BASH_ENV",
    "ENV",
    "PYTHONPATH",
    "PYTHONSTARTUP",
    "RANK",
    "WORLD_SIZE",
    "MASTER_ADDR",
    "MASTER_PORT",
];
const RESERVED_PREFIXES: [&str; 7] = ["YARD_", "SLURM_", "LD_", "CUDA_", "LOCAL_", "GROUP_", "NODE_"];

/// Why a name cannot be a secret's, if so.
pub fn check_name(name: &str) -> Result<(), String> {
    let first = name.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_');
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-');
    if !first || name.len() > NAME_MAX || !name.bytes().all(plain) {
        return Err(format!(
            "{name:?} cannot name a secret; use up to {NAME_MAX} letters, digits, `_`, `.` and `-`, with a letter or `_` first"
        ));
    }
    Ok(())
}

/// Why a secret cannot be a variable, if so.
fn check_variable(name: &str) -> Result<(), String> {
    if name.contains(['.', '-']) {
        return Err(format!(
            "{name} cannot be a variable, because of its `.` or `-`; ask for a file: {name}: file"
        ));
    }
    let reserved =
        RESERVED.contains(&name) || RESERVED_PREFIXES.iter().any(|prefix| name.starts_with(prefix));
    if reserved {
        return Err(format!("{name} is reserved; give the secret another name, or use a file"));
    }
    Ok(())
}

pub(super) fn check(request: &JobRequest) -> Result<(), Problem> {
    if request.secrets.len() > COUNT_MAX {
        return problem("secrets", format!("more than {COUNT_MAX} secrets are requested"));
    }
    for (name, handed) in &request.secrets {
        let sound = check_name(name).and_then(|()| match handed {
            Handed::Env if request.env.contains_key(name) => {
                Err(format!("{name} is in env too; keep one of them"))
            }
            Handed::Env => check_variable(name),
            Handed::File => Ok(()),
        });
        sound.or_else(|wrong| problem("secrets", wrong))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asks(name: &str, handed: Handed) -> Result<(), Problem> {
        let secrets = [(name.to_owned(), handed)].into();
        let env = [("EPOCHS".to_owned(), "9".to_owned())].into();
        check(&JobRequest { secrets, env, ..JobRequest::default() })
    }

    #[test]
    fn names_are_plain_words() {
        for name in ["WANDB_API_KEY", "_x", "hf-token", "a.b", &"n".repeat(NAME_MAX)] {
            assert_eq!(check_name(name), Ok(()), "{name}");
        }
        for name in ["", "1a", "-a", ".a", "a b", "a/b", "é", "a=b", "a\n", &"n".repeat(NAME_MAX + 1)] {
            assert!(check_name(name).is_err(), "{name:?}");
        }
    }

    #[test]
    fn a_secret_chooses_neither_devices_nor_what_is_loaded() {
        for name in [
            "YARD_SOCKET",
            "SLURM_JOB_ID",
            "LD_PRELOAD",
            "CUDA_VISIBLE_DEVICES",
            "PATH",
            "RANK",
            "LOCAL_RANK",
        ] {
            assert_eq!(asks(name, Handed::Env).unwrap_err().field, "secrets", "{name}");
            assert_eq!(asks(name, Handed::File), Ok(()), "a file of that name does no harm: {name}");
        }
        assert!(asks("hf-token", Handed::Env).unwrap_err().message.contains("hf-token: file"));
        assert!(asks("EPOCHS", Handed::Env).unwrap_err().message.contains("env too"));
        assert_eq!(asks("WANDB_API_KEY", Handed::Env), Ok(()));
    }
}
