#!/bin/sh
# usage: scripts/pg_tree.sh DIR [BUILD]
# Makes a tree of PostgreSQL's programs that knows the extension, and installs nothing: copies of
# the programs in DIR/usr/lib/postgresql/15/bin look for libraries and extensions in the
# directories beside them, which hold links to the system's files and copies of ours.
set -eu
dir=$1
root=$(cd "$(dirname "$0")/.." && pwd)
build=${2:-$root/build/release}
pg_config=${PG_CONFIG:-/usr/lib/postgresql/15/bin/pg_config}
bin_from=$("$pg_config" --bindir)
lib_from=$("$pg_config" --pkglibdir)
share_from=$("$pg_config" --sharedir)

bin=$dir/usr/lib/postgresql/15/bin
lib=$dir/usr/lib/postgresql/15/lib
share=$dir/usr/share/postgresql/15
mkdir -p "$bin" "$lib" "$share/extension"

# PostgreSQL resolves links to find itself, so programs have to be copies.
cp -p --remove-destination "$bin_from"/* "$bin"/
for entry in "$lib_from"/*; do ln -sfn "$entry" "$lib/${entry##*/}"; done
for entry in "$share_from"/*; do
  [ "${entry##*/}" = extension ] || ln -sfn "$entry" "$share/${entry##*/}"
done
for entry in "$share_from"/extension/*; do ln -sfn "$entry" "$share/extension/${entry##*/}"; done

# --remove-destination: a process that still maps the old file must keep it, and never write
# through a link into the system's directories.
copy() { cp --remove-destination "$@"; }
copy "$build/lib/pg_rdmacc.so" "$lib"/
for program in rdmacc_node rdmacc_bench; do
  [ ! -e "$build/bin/$program" ] || copy "$build/bin/$program" "$bin"/
done
copy "$root/rdmacc.control" "$root/rdmacc_workloads.control" "$root"/pg_rdmacc/sql/rdmacc--*.sql \
  "$share/extension"/
rm -f "$share/extension/rdmacc_workloads--1.1.sql" # perhaps a link
cat "$root"/pg_rdmacc/workload/script/*.sql > "$share/extension/rdmacc_workloads--1.1.sql"
mkdir -p "$share/rdmacc_workloads"
copy -R "$root"/pg_rdmacc/workload/pgbench/. "$share/rdmacc_workloads"/
chmod -R a+rX "$dir/usr"
