#!/usr/bin/env bash
# Opens and closes the shop.
set -euo pipefail

source "$(dirname "$0")/lib.sh"
. ./colors.sh

readonly LIMIT=50

# Says something.
# $1: what
say() {
  echo "say: $1" >&2 # say no more
}

function open_shop {
  local state='say closed'
  cat <<END
close_shop() {
}
END
  say "$state" && unlock
}

unlock () { say unlocked; }

close_shop()
{
  if say "closing"; then
    nested() {
      unlock
    }
    nested
  fi
}

main() (
  open_shop | tee log.txt
  result=$(close_shop)
)

main "$@"
