#!/bin/sh
# Makes sure that there are a Chromium and a Firefox for the browser tests: $CHROMIUM and $FIREFOX, or the system's.
set -eu
missing=
[ -x "${CHROMIUM:-/usr/bin/chromium}" ] || missing="$missing chromium"
[ -x "${FIREFOX:-/usr/bin/firefox-esr}" ] || missing="$missing firefox-esr"
[ -n "$missing" ] || exit 0
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
    echo "the browser tests need$missing in /usr/bin: install it, or say where it is by CHROMIUM= and FIREFOX=" >&2
    exit 1
fi
# shellcheck disable=SC2086 # one word for each package
apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install --yes --no-install-recommends $missing >/dev/null
