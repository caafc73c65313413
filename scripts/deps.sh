#!/bin/sh
# Installs the Debian packages of packages.txt that are missing, and of the other lists that are
# named as arguments; does nothing when none is.
set -eu
cd "$(dirname "$0")/.."

missing=
for package in $(cat packages.txt "$@"); do
  # Other packages of Node.js than Debian's have npm in them, and conflict with Debian's npm.
  [ "$package" != npm ] || ! command -v npm >/dev/null || continue
  status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
  [ "$status" = installed ] || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

echo "Installing packages:$missing"
as_root=
if [ "$(id -u)" != 0 ]; then
  command -v sudo >/dev/null || { echo "Not root and no sudo: install them yourself." >&2; exit 1; }
  as_root=sudo
fi
install() {
  $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends \
    -o Dpkg::Options::=--force-confold $missing
}
# The package lists may be missing or old: fetched only when the first try fails.
install || { $as_root apt-get update -q && install; }
