//! The keeper and the launcher alone, as `yard keeper --dir DIR` and `yard launch` run them: for the agent's tests.

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["keeper", "--dir", dir] => match yard_live::agent::keeper_main(Path::new(dir)) {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        },
        ["launch"] => yard_live::agent::launch_main(),
        _ => ExitCode::from(2),
    }
}
