#!/bin/sh
# System packages the tests need: installed when this runs as root, named otherwise.
set -eu
missing=""
ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || command -v initdb >/dev/null 2>&1 || missing="$missing postgresql"
[ -z "$missing" ] && exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    echo "installing system packages:$missing"
    export DEBIAN_FRONTEND=noninteractive
    apt-get -qq update >/dev/null
    # shellcheck disable=SC2086
    apt-get -qq install --no-install-recommends -y $missing >/dev/null
else
    echo "The tests need these system packages:$missing" >&2
    echo "Install them, for instance: sudo apt-get install$missing" >&2
    exit 1
fi
