//! Keeper, freezer and launcher alone, as `yard keeper`, `yard freezer` and `yard launch` run them: for the agent's
//! tests.

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["keeper", "--dir", dir] => match yard_live::agent::keeper_main(Path::new(dir)) {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        },
        ["freezer", "--dir", dir, "--fake"] => yard_live::agent::freezer_main(Path::new(dir), true)
            .map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS),
        ["launch"] => yard_live::agent::launch_main(),
        _ => ExitCode::from(2),
    }
}
