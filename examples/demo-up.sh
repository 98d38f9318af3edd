#!/bin/sh
# A cluster of pretend devices on this machine with short rounds, and the jobs of demo.sh on it. Ctrl-C stops it all.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(dirname "$here")
YARD=${YARD:-$root/target/release/yard}
cd "$root"
"$YARD" up --data .yard-demo --fake h100:2,v100:2 --round 10s --policy las &
up=$!
trap 'kill -INT $up 2>/dev/null; wait $up; exit 0' INT TERM
tries=0
until "$YARD" --help >/dev/null && [ -f .yard-demo/server.json ] && YARD_SERVER= "$YARD" nodes --data .yard-demo >/dev/null 2>&1; do
    tries=$((tries + 1))
    [ "$tries" -lt 100 ] || { echo "the server did not come up; its output is above" >&2; kill $up; exit 1; }
    sleep 0.1
done
YARD="$YARD" "$here/demo.sh"
wait $up
