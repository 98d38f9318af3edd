#!/bin/sh
# A cluster of pretend devices of two kinds with short rounds, in a folder of its own, and the jobs of demo.sh on it.
#   $YARD  the binary (default: target/release/yard)
set -eu

here=$(cd "$(dirname "$0")" && pwd)
root=$(dirname "$here")
YARD=${YARD:-$root/target/release/yard}
mkdir -p "$root/out/demo"
cd "$root/out/demo"

"$YARD" up --listen 127.0.0.1:0 --name demo --fake h100:2,v100:2 --round 10s --policy las --log warn &
up=$!
# Ctrl-C reaches the server as well; it asks the jobs to save, and this script waits for it.
trap 'wait $up || true' INT TERM

tries=0
until "$YARD" nodes 2>/dev/null | grep -q ' up '; do
    tries=$((tries + 1))
    if [ "$tries" -gt 100 ] || ! kill -0 $up 2>/dev/null; then
        echo "the server did not come up; its output is above" >&2
        exit 1
    fi
    sleep 0.1
done

YARD="$YARD" "$here/demo.sh"
echo
echo "Type these in another terminal, in $root/out/demo. Ctrl-C here stops the demonstration."
wait $up
