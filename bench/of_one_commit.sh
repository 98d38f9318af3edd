# Sourced by all.sh and validation.sh: figures are of one commit, so what they are measured on must be that commit.
# The file that is being rewritten may differ, and nothing else.
of_one_commit() {
    local changed
    changed=$(git status --porcelain -- . ":!$1" ':!bench/market.svg')
    [ -z "$changed" ] && return
    printf 'These files differ from the commit whose figures would be written to %s:\n%s\nCommit or stash them first.\n' "$1" "$changed" >&2
    exit 1
}
