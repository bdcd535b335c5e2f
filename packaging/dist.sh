#!/usr/bin/env bash
# Builds what a release publishes of the command, into target/dist: for each processor an archive and a
# Debian package, and their checksums. `make dist` runs it. One commit gives the same bytes, wherever its
# checkout is.
set -euo pipefail
umask 022
cd "$(dirname "$0")/.."

# Debian 11 has this version of glibc.
glibc=2.31
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)
export CARGO_TARGET_DIR=$PWD/target
export OFFHOURS_COMMIT SOURCE_DATE_EPOCH
OFFHOURS_COMMIT=$(git describe --always --dirty --abbrev=12 --exclude '*')
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
# The paths of this machine stay out of the programs, those of the standard library's source, too, where
# that is installed.
library=$(rustc --print sysroot)/lib/rustlib/src/rust
compiler=$(rustc -vV | sed -n 's/^commit-hash: //p')
RUSTFLAGS="--remap-path-prefix=$PWD=/offhours --remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=/cargo"
export RUSTFLAGS="$RUSTFLAGS --remap-path-prefix=$library=/rustc/$compiler"

processors=("$@")
here=$(uname -m)
dist=target/dist
shared=target/package
rm -rf "$dist" "$shared"
mkdir -p "$dist" "$shared/completions"

for processor in "${processors[@]}"; do
  echo "Building offhours $version ($OFFHOURS_COMMIT) for $processor (many minutes the first time) ..."
  if command -v rustup > /dev/null; then
    rustup target add "$processor-unknown-linux-gnu"
  fi
  cargo zigbuild --release --locked --package offhours --bin offhours \
    --target "$processor-unknown-linux-gnu.$glibc"
done

# The manual pages and completions are the same for each processor. The one that can be run here prints
# them.
program=target/$here-unknown-linux-gnu/release/offhours
said=$("$program" --version | head -n 1)
[ "$said" = "offhours $version ($OFFHOURS_COMMIT)" ] || { echo "--version says: $said" >&2; exit 1; }
"$program" man "$shared/man"
for shell in bash zsh fish; do
  "$program" completions "$shell" | sed "s|$PWD/$program|/usr/bin/offhours|g" > "$shared/completions/offhours.$shell"
done

for processor in "${processors[@]}"; do
  target=$processor-unknown-linux-gnu
  cargo deb --quiet --package offhours --target "$target" --no-build --no-strip --output "$dist/"

  name=offhours-$version-$processor-linux
  folder=$shared/$name
  mkdir -p "$folder/systemd"
  cp "target/$target/release/offhours" LICENSE ./*.md "$folder"
  cp -r docs examples "$shared/man" "$shared/completions" "$folder"
  cp packaging/*.service packaging/*.timer packaging/environment "$folder/systemd"
  tar --create --directory "$shared" --format=gnu --sort=name --mtime="@$SOURCE_DATE_EPOCH" \
    --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX "$name" | gzip -9 --no-name > "$dist/$name.tar.gz"
done

cd "$dist"
sha256sum -- *.deb *.tar.gz | tee SHA256SUMS
