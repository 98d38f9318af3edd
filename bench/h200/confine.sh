#!/bin/bash
# Shows that jobs are held in: by their control group from their first instruction, by limits of memory and processes, and
# by what they may open of GPUs. Needs root, control groups of version 2 and an NVIDIA GPU.
#
#   YARD=target/release/yard bench/h200/confine.sh
#
# Prints a line for each check, and exits with the number of those that failed.

set -u
YARD=$(realpath "${YARD:-target/release/yard}")
PORT=${PORT:-7497}
PYTHON=$(command -v python3) # Jobs may have another PATH.
CGROUPS=/sys/fs/cgroup
folder=$(mktemp -d /tmp/yard-confine.XXXXXX)
chmod 755 "$folder"
cd "$folder" || exit 99
server=
failed=0

stop() {
    [ -z "$server" ] && return
    kill -TERM "$server" 2>/dev/null
    for _ in $(seq 100); do kill -0 "$server" 2>/dev/null || break; sleep 0.1; done
    server=
}
trap 'stop; cd /; rm -rf "$folder"' EXIT

# check NAME COMMAND...: one line.
check() {
    local name=$1
    shift
    if "$@" >check.out 2>&1; then
        echo "ok      $name"
    else
        echo "FAILED  $name"
        sed 's/^/        /' check.out | tail -n 15
        failed=$((failed + 1))
    fi
}

# up OPTIONS...: a cluster of this machine, once its node is up.
up() {
    stop
    rm -rf .yard
    "$YARD" up --data .yard --listen "127.0.0.1:$PORT" --name h200 "$@" >up.log 2>&1 &
    server=$!
    for _ in $(seq 300); do
        "$YARD" nodes -o json 2>/dev/null | grep -q '"up"' && return 0
        kill -0 "$server" 2>/dev/null || break
        sleep 0.1
    done
    echo "FAILED  yard up $*"
    tail -n 20 up.log
    exit 98
}

# job OPTIONS... -- COMMAND...: runs a job to its end; its output is in job.out, its exit code is ours.
job() {
    "$YARD" submit --wait "$@" >submit.out 2>&1
    local code=$?
    "$YARD" logs last >job.out 2>>submit.out
    "$YARD" logs --stderr last >job.err 2>>submit.out
    return $code
}

# All that is known of the last job, for checks that fail.
tell() {
    cat submit.out job.out job.err 2>/dev/null
    "$YARD" show last 2>/dev/null
    grep -i -E 'control group|devices|limit' up.log
    return 1
} >&2

# In a container the processes of the root group keep it from having limits below it: they get a group of their own.
delegate() {
    [ -e $CGROUPS/cgroup.controllers ] || { echo "no control groups of version 2 at $CGROUPS"; return 1; }
    mount -o remount,rw $CGROUPS 2>/dev/null
    if ! echo "+memory +pids +cpu" >$CGROUPS/cgroup.subtree_control 2>/dev/null; then
        mkdir -p $CGROUPS/all-else
        for _ in 1 2 3; do
            while read -r pid; do echo "$pid" >$CGROUPS/all-else/cgroup.procs; done 2>/dev/null <$CGROUPS/cgroup.procs
        done
        for controller in memory pids cpu; do echo "+$controller" >$CGROUPS/cgroup.subtree_control; done
    fi
    cat $CGROUPS/cgroup.controllers $CGROUPS/cgroup.subtree_control
    grep -q memory $CGROUPS/cgroup.subtree_control && grep -q pids $CGROUPS/cgroup.subtree_control
}

in_group_at_once() {
    job --gpus "$1" -- cat /proc/self/cgroup || tell
    grep -q -E '/yard-[0-9a-f]{8}/[0-9]+-[0-9]+-[0-9]+$' job.out || tell
}

memory_limit_kills() {
    if job --gpus "$1" --memory 256 -- "$PYTHON" -c 'x = bytearray(1 << 30); print(len(x))'; then tell; return 1; fi
    grep -q "ran out of memory at its limit of 256 MiB" job.err || tell
}

memory_has_a_default() {
    job --gpus "$1" -- sh -c 'cat /sys/fs/cgroup"$(sed -n "s/^0:://p" /proc/self/cgroup)"/memory.max' || tell
    grep -q -E '^[0-9]{10,}$' job.out || tell
}

# As many sleeping processes as it may have, then no more; and the machine goes on.
processes_are_bounded() {
    job --gpus "$1" -- "$PYTHON" -c '
import os, time
made = 0
try:
    while made < 7000:
        pid = os.fork()
        if pid == 0:
            time.sleep(30); os._exit(0)
        made += 1
except BlockingIOError:
    print("stopped at", made)
' || tell
    grep -q -E '^stopped at [0-9]+$' job.out || { tell; return 1; }
    made=$(sed -n 's/^stopped at //p' job.out)
    [ "$made" -lt 6000 ] && sh -c true && "$YARD" nodes >/dev/null || tell
}

nothing_is_left() {
    sleep 1
    local groups
    groups=$(find $CGROUPS/yard-* -mindepth 1 -type d 2>/dev/null)
    [ -z "$groups" ] || { echo "$groups"; return 1; }
}

opens() {
    job --gpus "$1" -- "$PYTHON" -c '
import os
try:
    os.open("/dev/nvidia0", os.O_RDWR); print("opened")
except OSError as error:
    print(error.strerror)
' || tell
    grep -q "^$2\$" job.out || tell
}

# A file of the same number under another name.
makes_no_other_way() {
    job --gpus 0 -- "$PYTHON" -c '
import os
try:
    os.mknod("card", 0o20600, os.makedev(195, 0)); os.open("card", os.O_RDWR); print("opened")
except OSError as error:
    print(error.strerror)
' || tell
    grep -q "^Operation not permitted$" job.out || tell
}

computes() {
    job --gpus 1 -- "$PYTHON" -c '
import ctypes
cuda = ctypes.CDLL("libcuda.so.1")
count = ctypes.c_int()
assert cuda.cuInit(0) == 0 and cuda.cuDeviceGetCount(ctypes.byref(count)) == 0
device, context = ctypes.c_int(), ctypes.c_void_p()
assert cuda.cuDeviceGet(ctypes.byref(device), 0) == 0
assert cuda.cuCtxCreate_v2(ctypes.byref(context), 0, device) == 0
print("cards", count.value)
' || tell
    grep -q "^cards 1$" job.out || tell
}

log_is_bounded() {
    job --gpus "$1" -- timeout 6 yes
    "$YARD" logs --tail 1 last | grep -q "^y$" || tell
    local size
    size=$(find .yard -name 'rank-0.out*' -printf '%s\n' | sort -n | tail -n 1)
    [ "$size" -le $((64 << 20)) ] || { echo "a log has $size bytes"; return 1; }
}

check "limits can be set below $CGROUPS" delegate

if [ -e /dev/nvidia0 ]; then
    up --devices-enforced required
    check "a GPU job is in its control group at its first act" in_group_at_once 1
    check "a GPU job can open its GPU" opens 1 opened
    check "a GPU job can compute on its GPU" computes
    check "a GPU job has a limit of memory by default" memory_has_a_default 1
    check "a GPU job beyond its memory is killed, and told so" memory_limit_kills 1
    up --cpu-slots 4 --devices-enforced required
    check "a job without GPU cannot open a GPU" opens 0 "Operation not permitted"
    check "a job without GPU cannot make a file for a GPU" makes_no_other_way
else
    echo "FAILED  there is no /dev/nvidia0"
    failed=$((failed + 1))
    up --cpu-slots 4
fi
check "a job is in its control group at its first act" in_group_at_once 0
check "a job beyond its memory is killed, and told so" memory_limit_kills 0
check "a job has a limit of memory by default" memory_has_a_default 0
check "a fork bomb is stopped, and the machine goes on" processes_are_bounded 0
check "a log stays within 64 MiB, and is right at its end" log_is_bounded 0
check "no control group of a job that is over is left" nothing_is_left
exit $failed
