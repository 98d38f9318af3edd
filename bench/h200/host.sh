#!/bin/bash
# Shows that hosts are not oversubscribed: of jobs that each ask for EACH cores (4), as many run at a time as the machine has
# cores for, whether they ask for a GPU or not. (First come, first served: nobody is stopped for another.)
#
#   YARD=target/release/yard bench/h200/host.sh
#
# Each job writes down when it began and when it ended; the largest number that overlap is counted from that. Prints a
# line for each check, and exits with the number of those that failed.

set -u
YARD=$(realpath "${YARD:-target/release/yard}")
PORT=${PORT:-7498}
export YARD_SERVER=http://127.0.0.1:$PORT
folder=$(mktemp -d /tmp/yard-host.XXXXXX)
chmod 755 "$folder"
cd "$folder" || exit 99
cores=$(nproc)
each=${EACH:-4}
failed=0

"$YARD" up --data .yard --listen "127.0.0.1:$PORT" --name host --cpu-slots "$cores" --policy fifo "$@" >up.log 2>&1 &
server=$!
trap 'kill -TERM $server 2>/dev/null; wait $server 2>/dev/null; cd /; rm -rf "$folder"' EXIT
for _ in $(seq 300); do "$YARD" nodes -o json 2>/dev/null | grep -q '"up"' && break; sleep 0.1; done
export YARD_DATA=$folder/.yard
"$YARD" nodes || { tail -n 20 up.log; exit 98; }

# Runs jobs, each with these options, and prints how many of them ran at a time.
most_at_a_time() {
    rm -rf times; mkdir times
    for options in "$@"; do
        # shellcheck disable=SC2086
        "$YARD" submit --duration 4s $options -- sh -c 'date +%s.%N > '"$folder"'/times/$$.a; sleep 4; date +%s.%N > '"$folder"'/times/$$.b' >/dev/null || return 1
    done
    for _ in $(seq 600); do [ "$(ls times/*.b 2>/dev/null | wc -l)" = $# ] && break; sleep 0.2; done
    for begin in times/*.a; do echo "$(cat "$begin") 1"; echo "$(cat "${begin%.a}.b" 2>/dev/null || echo 9e9) -1"; done |
        sort -n | awk '{ now += $2; if (now > most) most = now; if ($2 > 0) all++ } END { print most, "of", all }'
}

# check NAME WANTED OPTIONS...
check() {
    local name=$1 wanted=$2 found
    shift 2
    found=$(most_at_a_time "$@")
    [ "$found" = "$wanted" ] && echo "ok      $name: $found at a time" && return
    echo "FAILED  $name: $found at a time, not $wanted"
    "$YARD" jobs | tail -n 10
    failed=$((failed + 1))
}

most=$((cores / each < 8 ? cores / each : 8))
check "eight jobs of $each cores and no GPU on $cores cores" "$most of 8" \
    "--gpus 0 --cpus $each" "--gpus 0 --cpus $each" "--gpus 0 --cpus $each" "--gpus 0 --cpus $each" \
    "--gpus 0 --cpus $each" "--gpus 0 --cpus $each" "--gpus 0 --cpus $each" "--gpus 0 --cpus $each"
check "one with a GPU among them" "$most of 8" \
    "--gpus 1 --cpus $each" "--gpus 0 --cpus $each" "--gpus 0 --cpus $each" "--gpus 0 --cpus $each" \
    "--gpus 0 --cpus $each" "--gpus 0 --cpus $each" "--gpus 0 --cpus $each" "--gpus 0 --cpus $each"
exit $failed
