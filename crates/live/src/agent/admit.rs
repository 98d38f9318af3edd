//! Who this node runs jobs for, and as whom. An agent that is not root cannot become anybody else, so it runs jobs of
//! its own user only: as itself, a job of another user could read whatever that user has. A root agent runs jobs of
//! everybody but the system's own accounts.

use std::collections::BTreeMap;
use std::path::Path;

use nix::unistd::{User, geteuid};

use super::keeper::RunAs;
use super::spawn::Unspawned;
use super::{AgentConfig, env, reach};
use crate::wire::OnlyUser;

/// Who a job runs as: its user, and what its environment begins with.
#[derive(Debug)]
pub(crate) struct UserAccount {
    pub(crate) run_as: Option<RunAs>,
    pub(crate) base: BTreeMap<String, String>,
}

impl UserAccount {
    /// Who files must belong to, where that is not the agent's own user.
    pub(crate) fn owner(&self) -> Option<(u32, u32)> {
        self.run_as.as_ref().map(|user| (user.uid, user.gid))
    }

    /// The number of the user.
    pub(crate) fn uid(&self) -> u32 {
        self.owner().map_or_else(|| geteuid().as_raw(), |(uid, _)| uid)
    }
}

/// Who a node runs jobs for.
#[derive(Clone, Debug)]
pub(crate) struct Admission {
    node: String,
    /// The agent's own user.
    own_uid: u32,
    /// The one user, where there is no other.
    only: Option<OnlyUser>,
    min_uid: u32,
    own_user_too: bool,
    job_env: BTreeMap<String, String>,
}

impl Admission {
    /// By the agent's rights, its options, and where its folder is.
    pub(crate) fn new(config: &AgentConfig, data: &Path) -> Admission {
        Admission {
            node: config.name.clone(),
            own_uid: geteuid().as_raw(),
            only: only(geteuid().is_root(), data),
            min_uid: config.guests.min_uid,
            own_user_too: config.guests.own_user_too,
            job_env: config.guests.job_env.clone(),
        }
    }

    /// Whose jobs alone run here, where that is so.
    pub(crate) fn only_user(&self) -> Option<OnlyUser> {
        self.only.clone()
    }

    /// Who a job of this user runs as, if it may run here at all.
    pub(crate) fn account(&self, user: &str, launcher: &[String]) -> Result<UserAccount, Unspawned> {
        let refused = |message| Unspawned { code: Some(126), message };
        if let Some(only) = self.only.as_ref().filter(|only| only.name != user) {
            let (node, OnlyUser { name, why }) = (&self.node, only);
            return Err(refused(format!("node {node} runs only jobs of {name}: {why}")));
        }
        let known = User::from_name(user).map_err(|error| refused(format!("user {user}: {error}")))?;
        if self.own_uid != 0 {
            return Ok(UserAccount { run_as: None, base: self.base(user, known.as_ref()) });
        }
        let known = known.ok_or_else(|| {
            refused(format!("user {user:?} does not exist on node {}; create the account there", self.node))
        })?;
        self.check_uid(&known).map_err(refused)?;
        let base = self.base(user, Some(&known));
        let (uid, gid, launcher) = (known.uid.as_raw(), known.gid.as_raw(), launcher.to_vec());
        let run_as = (uid != self.own_uid).then_some(RunAs { name: known.name, uid, gid, launcher });
        Ok(UserAccount { run_as, base })
    }

    /// Accounts of the system run no jobs, unless the operator says so.
    fn check_uid(&self, user: &User) -> Result<(), String> {
        let (uid, least, node) = (user.uid.as_raw(), self.min_uid, &self.node);
        if uid >= least || (self.own_user_too && uid == self.own_uid) {
            return Ok(());
        }
        Err(format!(
            "user {} has uid {uid}, and node {node} runs jobs of users with uid {least} and above; \
             to allow it, start the node's agent with --min-uid {uid}",
            user.name
        ))
    }

    /// What a login gives, and what the operator adds. Nothing of the agent's own environment is in it.
    fn base(&self, name: &str, known: Option<&User>) -> BTreeMap<String, String> {
        let mut base = env::login(name, known);
        base.extend(self.job_env.clone());
        base
    }
}

#[cfg(test)]
impl Admission {
    /// That of an agent in a folder that all can reach.
    pub(crate) fn of_test(min_uid: u32) -> Admission {
        let own_uid = geteuid().as_raw();
        let only = only(own_uid == 0, Path::new("/"));
        let (node, job_env) = ("n1".to_owned(), BTreeMap::new());
        Admission { node, own_uid, only, min_uid, own_user_too: false, job_env }
    }
}

/// Whom an agent is restricted to.
fn only(is_root: bool, data: &Path) -> Option<OnlyUser> {
    let name = own_name();
    if !is_root {
        return Some(OnlyUser { name, why: "its agent does not run as root".into() });
    }
    let closed = reach::closed_at(data)?;
    let why = format!("other users cannot reach its agent's folder ({} is closed to them)", closed.display());
    tracing::warn!("this node runs only jobs of {name}: {why}; choose another folder with --data");
    Some(OnlyUser { name, why })
}

/// The name of the user who runs this process. One without an account is called `admin`, as is the first token's user.
pub fn own_name() -> String {
    let known = User::from_uid(geteuid()).ok().flatten();
    known.map_or_else(|| "admin".to_owned(), |user| user.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root(min_uid: u32) -> Admission {
        Admission {
            own_uid: 0,
            only: None,
            job_env: BTreeMap::from([("EXTRA".into(), "1".into())]),
            ..Admission::of_test(min_uid)
        }
    }

    fn refusal(admission: &Admission, user: &str) -> String {
        let refused = admission.account(user, &[]).unwrap_err();
        assert_eq!(refused.code, Some(126));
        refused.message
    }

    #[test]
    fn an_agent_that_is_not_root_runs_its_own_users_jobs_only() {
        let why = "its agent does not run as root";
        assert_eq!(only(false, Path::new("/")), Some(OnlyUser { name: own_name(), why: why.into() }));
        let ada = Some(OnlyUser { name: "ada".into(), why: why.into() });
        let admission = Admission { own_uid: 1_234, only: ada, ..root(1_000) };
        for other in ["root", "nobody", "nobody-of-this-name"] {
            let said = refusal(&admission, other);
            assert!(said.contains("only jobs of ada") && said.contains(why), "{said}");
        }
        let account = admission.account("ada", &[]).unwrap();
        assert!(account.run_as.is_none());
        assert_eq!((account.base["USER"].as_str(), account.base["EXTRA"].as_str()), ("ada", "1"));
    }

    #[test]
    fn accounts_of_the_system_run_nothing_unless_the_operator_says_so() {
        let said = refusal(&root(1_000), "root");
        assert!(said.contains("uid 0") && said.contains("1000") && said.contains("--min-uid"), "{said}");
        assert!(refusal(&root(1_000), "daemon").contains("uid 1,"));
        assert!(refusal(&root(1_000), "nobody-of-this-name").contains("does not exist"));
        assert_eq!(root(1_000).account("nobody", &[]).unwrap().owner(), Some((65_534, 65_534)));
        assert!(root(0).account("root", &[]).unwrap().run_as.is_none());
        let own = Admission { own_user_too: true, ..root(1_000) };
        assert!(own.account("root", &[]).is_ok() && own.account("daemon", &[]).is_err());
    }

    #[test]
    fn a_root_agent_out_of_reach_runs_its_own_users_jobs_only() {
        use std::os::unix::fs::PermissionsExt;
        let folder = crate::agent::testing::Folder::new();
        assert_eq!(only(true, folder.path()), None);
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o700)).unwrap();
        let found = only(true, folder.path()).unwrap();
        assert!(
            found.name == own_name() && found.why.contains(&*folder.path().to_string_lossy()),
            "{found:?}"
        );
    }

    #[test]
    fn nothing_of_the_agents_environment_is_a_jobs() {
        let base = root(0).account("root", &[]).unwrap().base;
        let names: Vec<_> = base.keys().map(String::as_str).collect();
        assert_eq!(names, ["EXTRA", "HOME", "LANG", "LOGNAME", "PATH", "SHELL", "USER"]);
        assert_eq!(base["PATH"], "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
    }
}
