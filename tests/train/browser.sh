# SPDX-License-Identifier: Apache-2.0
#
# Sourced by the tests of pages, after what needs no browser: where there is no Chromium, the test ends here.
if ! command -v chromium >/dev/null; then
  say "ends here: there is no chromium; try: apt-get install chromium"
  exit 0
fi

# dom PAGE: what Chromium makes of it, in PAGE.dom; it complains of nothing
dom() {
  HOME=$PWD chromium --headless --no-sandbox --disable-gpu --user-data-dir="$PWD/chromium" --window-size=1200,2400 \
    --enable-logging=stderr --virtual-time-budget=3000 --dump-dom "file://$PWD/$1" >"$1.dom" 2>browser.txt ||
    { cat browser.txt; fail "chromium: $1"; }
  ! grep CONSOLE browser.txt || fail "$1: the console has messages"
}
