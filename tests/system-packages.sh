#!/bin/sh
# Sees to system packages: installs those that are missing when it runs as root, names them otherwise.
#   sh tests/system-packages.sh python3-venv postgresql
set -eu

present() {
    case "$1" in
        postgresql) ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || command -v initdb >/dev/null 2>&1 ;;
        mariadb-server) [ -x /usr/sbin/mariadbd ] || command -v mariadbd >/dev/null 2>&1 ;;
        default-jre-headless) command -v java >/dev/null 2>&1 || [ -n "${JAVA_HOME:-}" ] ;;
        fonts-noto-cjk) fc-list :lang=zh 2>/dev/null | grep -q . ;;
        python3-venv) python3 -c 'import ensurepip, venv' >/dev/null 2>&1 ;;
        *) command -v "$1" >/dev/null 2>&1 ;;
    esac
}

missing=""
for package in "$@"; do
    present "$package" || missing="$missing $package"
done
[ -z "$missing" ] && exit 0

if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    echo "installing system packages:$missing"
    export DEBIAN_FRONTEND=noninteractive
    # Another program may be installing something: wait for it, and ask twice.
    install() {
        apt-get -qq -o DPkg::Lock::Timeout=300 update >/dev/null
        # shellcheck disable=SC2086
        apt-get -qq -o DPkg::Lock::Timeout=300 install --no-install-recommends -y $missing >/dev/null 2>&1
    }
    install || { sleep 5; install; } || {
        echo "apt-get could not install:$missing" >&2
        exit 1
    }
else
    echo "These system packages are needed:$missing" >&2
    echo "Install them, for instance: sudo apt-get install$missing" >&2
    exit 1
fi
