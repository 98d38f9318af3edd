//! Programs in the kernel that say which devices the processes of a control group may use. A program is a chain of
//! comparisons made here from a list of rules, and stays with its group until the group is removed.

#![expect(unsafe_code, reason = "the system call has no safe form")]

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::Path;

use nix::errno::Errno;
use nix::libc::{SYS_bpf, syscall};

/// From the kernel's `bpf.h`.
const PROG_LOAD: i64 = 5;
const PROG_ATTACH: i64 = 8;
const PROG_TYPE_CGROUP_DEVICE: u32 = 15;
const ATTACH_CGROUP_DEVICE: u32 = 6;
/// Other programs of this group and of those above it count too.
const ALLOW_MULTI: u32 = 2;
const CHARACTER_DEVICE: i32 = 2;

/// Whether a device may be used. Of several rules for a device the first counts; without any it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DeviceRule {
    /// The major number.
    pub(crate) major: u32,
    /// The minor number; none: all of them.
    pub(crate) minor: Option<u32>,
    /// Whether it may be used.
    pub(crate) open: bool,
}

/// A program that the kernel has checked.
#[derive(Debug)]
pub(crate) struct DeviceProgram(OwnedFd);

impl DeviceProgram {
    /// Hands rules for character devices to the kernel.
    pub(crate) fn load(rules: &[DeviceRule]) -> io::Result<DeviceProgram> {
        /// The part of the kernel's structure that is used; the rest is zero by its length.
        #[repr(C)]
        struct Load {
            kind: u32,
            count: u32,
            instructions: u64,
            license: u64,
        }
        let program = compile(rules);
        let load = Load {
            kind: PROG_TYPE_CGROUP_DEVICE,
            count: program.len() as u32,
            instructions: program.as_ptr() as u64,
            license: c"GPL".as_ptr() as u64,
        };
        // SAFETY: `load` is the beginning of `union bpf_attr` for this command and as long as is said. It points to as
        // many instructions as it counts and to a string that ends, which outlive the call; the kernel only reads them.
        let file = unsafe { syscall(SYS_bpf, PROG_LOAD, &raw const load, size_of::<Load>()) };
        let file = Errno::result(file)?;
        // SAFETY: the call succeeded, so it gave a new descriptor that nobody else has.
        Ok(DeviceProgram(unsafe { OwnedFd::from_raw_fd(file as i32) }))
    }

    /// Lets it decide for all processes that are, and will be, in this control group.
    pub(crate) fn attach(&self, cgroup: &Path) -> io::Result<()> {
        #[repr(C)]
        struct Attach {
            group: u32,
            program: u32,
            kind: u32,
            flags: u32,
        }
        let group = File::open(cgroup)?;
        let attach = Attach {
            group: group.as_raw_fd() as u32,
            program: self.0.as_raw_fd() as u32,
            kind: ATTACH_CGROUP_DEVICE,
            flags: ALLOW_MULTI,
        };
        // SAFETY: `attach` is the beginning of `union bpf_attr` for this command and as long as is said; both
        // descriptors are open.
        let attached = unsafe { syscall(SYS_bpf, PROG_ATTACH, &raw const attach, size_of::<Attach>()) };
        Errno::result(attached)?;
        Ok(())
    }
}

/// One instruction of the kernel's machine. Registers: 0 the answer, 1 what is asked, 2 type, 3 major, 4 minor.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Instruction {
    code: u8,
    registers: u8,
    offset: i16,
    value: i32,
}

/// The program for some rules.
fn compile(rules: &[DeviceRule]) -> Vec<Instruction> {
    let of = |code, registers, offset, value| Instruction { code, registers, offset, value };
    let load = |register: u8, offset| of(0x61, register | 1 << 4, offset, 0);
    let differs = |register, value: u32, skip| of(0x55, register, skip, value as i32);
    let answer = |open: bool| [of(0xb7, 0, 0, i32::from(open)), of(0x95, 0, 0, 0)];
    let mut program = vec![load(2, 0), load(3, 4), load(4, 8)];
    program.extend([of(0x57, 2, 0, 0xffff), of(0x15, 2, 2, CHARACTER_DEVICE)]);
    program.extend(answer(true));
    for DeviceRule { major, minor, open } in rules {
        program.push(differs(3, *major, if minor.is_some() { 3 } else { 2 }));
        program.extend(minor.map(|minor| differs(4, minor, 2)));
        program.extend(answer(*open));
    }
    program.extend(answer(true));
    program
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a program answers, as the kernel would run it.
    fn run(program: &[Instruction], kind: u32, major: u32, minor: u32) -> bool {
        let asked = [kind | 7 << 16, major, minor];
        let mut registers = [0_u32; 5];
        let mut at = 0;
        loop {
            let Instruction { code, registers: pair, offset, value } = program[at];
            let target = usize::from(pair & 15);
            let skip = match code {
                0x61 => {
                    registers[target] = asked[offset as usize / 4];
                    false
                }
                0x57 => {
                    registers[target] &= value as u32;
                    false
                }
                0xb7 => {
                    registers[target] = value as u32;
                    false
                }
                0x15 => registers[target] == value as u32,
                0x55 => registers[target] != value as u32,
                _ => return registers[0] == 1,
            };
            at += 1 + if skip { offset as usize } else { 0 };
        }
    }

    #[test]
    fn the_first_rule_counts_and_other_devices_are_open() {
        let rule = |major, minor, open| DeviceRule { major, minor, open };
        let rules = [
            rule(195, Some(1), true),
            rule(195, Some(255), true),
            rule(226, Some(0), false),
            rule(195, None, false),
        ];
        let program = compile(&rules);
        let open = |kind, major, minor| run(&program, kind, major, minor);
        assert!(open(2, 195, 1) && open(2, 195, 255) && open(2, 1, 3) && open(2, 226, 1));
        assert!(!open(2, 195, 0) && !open(2, 195, 7) && !open(2, 226, 0));
        assert!(open(1, 195, 0)); // A disk of that number is none of them.
    }
}
