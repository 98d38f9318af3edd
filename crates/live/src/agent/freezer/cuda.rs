//! The NVIDIA driver's checkpoint calls, from libcuda, which is loaded at run time: where there is none, or an old
//! one, nothing can be frozen and the rest works. They need no context and no card of their own.
#![expect(unsafe_code, reason = "calls into a C library that is loaded at run time have no safe form")]

use std::ffi::c_int;

use libloading::Library;

use super::bytes_of;
use super::calls::{Calls, ProcessState};
use super::words::Failure;

/// The library's name where a driver is installed.
const LIBRARY: &str = "libcuda.so.1";

/// How long a process may take to come to the end of the driver call it is in.
const LOCK_MS: u32 = 10_000;

/// `CUresult`: what the calls below give for causes that are told apart here.
const SUCCESS: c_int = 0;
const INVALID_VALUE: c_int = 1;
const NOT_INITIALIZED: c_int = 3;
const NOT_PERMITTED: c_int = 800;
const NOT_SUPPORTED: c_int = 801;

/// `CUcheckpointLockArgs`.
#[repr(C)]
struct LockArgs {
    timeout_ms: u32,
    reserved: u32,
    more: [u64; 7],
}

type Init = unsafe extern "C" fn(flags: u32) -> c_int;
type GetState = unsafe extern "C" fn(pid: c_int, state: *mut c_int) -> c_int;
type Lock = unsafe extern "C" fn(pid: c_int, args: *mut LockArgs) -> c_int;
/// The arguments of the other calls may be left out.
type Call = unsafe extern "C" fn(pid: c_int, args: *mut u8) -> c_int;

/// The calls, with the library they are from.
pub(super) struct Cuda {
    state: GetState,
    lock: Lock,
    checkpoint: Call,
    restore: Call,
    unlock: Call,
    _library: Library,
}

impl Cuda {
    /// Loads the library and finds the calls.
    pub(super) fn load() -> Result<Cuda, Failure> {
        // SAFETY: the driver's own library does nothing when it is loaded that would be undone here.
        let library = unsafe { Library::new(LIBRARY) }
            .map_err(|error| never(format!("there is no NVIDIA driver ({error})")))?;
        // SAFETY: the types are those of cuda.h since CUDA 12.8.
        let cuda = unsafe {
            let init: Init = find(&library, "cuInit")?;
            let code = init(0);
            if code != SUCCESS {
                return Err(Failure {
                    reason: format!("the driver does not start: {}", name(code)),
                    forever: true,
                });
            }
            Cuda {
                state: find(&library, "cuCheckpointProcessGetState")?,
                lock: find(&library, "cuCheckpointProcessLock")?,
                checkpoint: find(&library, "cuCheckpointProcessCheckpoint")?,
                restore: find(&library, "cuCheckpointProcessRestore")?,
                unlock: find(&library, "cuCheckpointProcessUnlock")?,
                _library: library,
            }
        };
        Ok(cuda)
    }
}

/// # Safety
/// The symbol must have this type.
unsafe fn find<T: Copy>(library: &Library, symbol: &str) -> Result<T, Failure> {
    // SAFETY: as the caller promises; it keeps the library for as long as the pointer.
    let found = unsafe { library.get::<T>(symbol.as_bytes()) };
    let old = |_| never(format!("the NVIDIA driver has no {symbol}; 570 is the first that can freeze"));
    found.map(|symbol| *symbol).map_err(old)
}

fn never(reason: String) -> Failure {
    Failure { reason, forever: true }
}

impl Calls for Cuda {
    fn state(&self, pid: i32) -> Result<Option<ProcessState>, Failure> {
        let mut state = -1;
        // SAFETY: the pointer is valid for the call.
        let code = unsafe { (self.state)(pid, &raw mut state) };
        match (code, state) {
            (SUCCESS, 0) => Ok(Some(ProcessState::Running)),
            (SUCCESS, 1) => Ok(Some(ProcessState::Locked)),
            (SUCCESS, 2) => Ok(Some(ProcessState::Checkpointed)),
            (SUCCESS, _) => Ok(Some(ProcessState::Failed)),
            // It does not use CUDA, or is no more.
            (NOT_INITIALIZED | INVALID_VALUE, _) => Ok(None),
            (code, _) => failed("looking at", pid, code).map(|()| None),
        }
    }

    fn lock(&self, pid: i32) -> Result<(), Failure> {
        let mut args = LockArgs { timeout_ms: LOCK_MS, reserved: 0, more: [0; 7] };
        // SAFETY: the pointer is valid for the call, and the rest of the arguments is zero as it must be.
        failed("locking", pid, unsafe { (self.lock)(pid, &raw mut args) })
    }

    fn checkpoint(&self, pid: i32) -> Result<(), Failure> {
        // SAFETY: arguments may be left out.
        failed("checkpointing", pid, unsafe { (self.checkpoint)(pid, std::ptr::null_mut()) })
    }

    fn restore(&self, pid: i32) -> Result<(), Failure> {
        // SAFETY: arguments may be left out.
        failed("restoring", pid, unsafe { (self.restore)(pid, std::ptr::null_mut()) })
    }

    fn unlock(&self, pid: i32) -> Result<(), Failure> {
        // SAFETY: arguments may be left out.
        failed("unlocking", pid, unsafe { (self.unlock)(pid, std::ptr::null_mut()) })
    }

    /// What the process has in memory: it grows by what it had on cards.
    fn memory(&self, pid: i32) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        bytes_of(&status, "VmRSS:").unwrap_or(0)
    }
}

fn failed(doing: &str, pid: i32, code: c_int) -> Result<(), Failure> {
    if code == SUCCESS {
        return Ok(());
    }
    let why = if code == NOT_SUPPORTED {
        "; it shares its GPU through MPS, or its memory with other processes"
    } else {
        ""
    };
    let reason = format!("{doing} process {pid}: {}{why}", name(code));
    Err(Failure { reason, forever: matches!(code, NOT_SUPPORTED | NOT_PERMITTED) })
}

/// What cuda.h calls a result.
fn name(code: c_int) -> String {
    let known = match code {
        INVALID_VALUE => "CUDA_ERROR_INVALID_VALUE",
        2 => "CUDA_ERROR_OUT_OF_MEMORY",
        NOT_INITIALIZED => "CUDA_ERROR_NOT_INITIALIZED",
        100 => "CUDA_ERROR_NO_DEVICE",
        304 => "CUDA_ERROR_OPERATING_SYSTEM",
        401 => "CUDA_ERROR_ILLEGAL_STATE",
        600 => "CUDA_ERROR_NOT_READY",
        NOT_PERMITTED => "CUDA_ERROR_NOT_PERMITTED",
        NOT_SUPPORTED => "CUDA_ERROR_NOT_SUPPORTED",
        803 => "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",
        999 => "CUDA_ERROR_UNKNOWN",
        _ => return format!("CUDA error {code}"),
    };
    known.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_would_fail_again_is_given_up_for_ever() {
        assert_eq!(failed("locking", 7, SUCCESS), Ok(()));
        let forever = |code| failed("locking", 7, code).is_err_and(|failure| failure.forever);
        assert!(forever(801) && forever(800) && !forever(600) && !forever(401) && !forever(2));
        let failure = failed("locking", 7, 600).unwrap_err();
        assert_eq!(failure.reason, "locking process 7: CUDA_ERROR_NOT_READY");
    }
}
