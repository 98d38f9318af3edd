#!/bin/sh
# Makes sure that there is a Chromium for the browser tests: $CHROMIUM, or the system's.
set -eu
chromium=${CHROMIUM:-/usr/bin/chromium}
[ -x "$chromium" ] && exit 0
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
    echo "the browser tests need Chromium at $chromium: install it, or say where it is by CHROMIUM=" >&2
    exit 1
fi
apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install --yes --no-install-recommends chromium >/dev/null
