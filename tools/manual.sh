#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Writes the manual page of a program from what its `--help all` prints, which is made from its option table.
#
#   tools/manual.sh NAME 'what it is' VERSION PROGRAM [--commands] > NAME.1
#
# With --commands, also from `PROGRAM COMMAND --help all` of each command that its --help lists.
set -eu
name=$1 summary=$2 version=$3 program=$4
shift 4

page() {
  awk '
    function text(line) { # roff takes a backslash, and a dot or quote at the beginning, for its own
      gsub(/\\/, "\\e", line)
      gsub(/-/, "\\-", line)
      return line ~ /^[.\x27]/ ? "\\&" line : line
    }
    function as_is(want) { # lines whose breaks stay
      if (want != kept) print want ? ".nf" : ".fi"
      kept = want
    }
    function option(left, right) {
      as_is(0)
      print ".TP"
      print "\\fB" text(left) "\\fR"
      print text(right)
    }
    sub(/^OVERVIEW: */, "") { print ".SH DESCRIPTION"; as_is(1); print text($0); next }
    sub(/^(USAGE|usage): */, "") { as_is(0); print ".SH SYNOPSIS"; if ($0 != "") print ".B " text($0); next }
    /^OPTIONS:$/ { next }
    /^[A-Za-z][^.]*:$/ { as_is(0); sub(/:$/, ""); print ".SH " toupper(text($0)); next }
    /^  +(-[A-Za-z], )?--?[A-Za-z]/ && match($0, /^ +/) && RLENGTH < 30 {
      line = $0
      sub(/^ +/, "", line)
      at = match(line, / +- /)
      if (at) { option(substr(line, 1, at - 1), substr(line, at + RLENGTH)); next }
      at = match(line, /  +/)
      option(at ? substr(line, 1, at - 1) : line, at ? substr(line, at + RLENGTH) : "")
      within = 1
      next
    }
    /^                              / && within { # mawk knows no {30}
      sub(/^ +/, ""); print text($0); next }
    /^$/ { within = 0; as_is(0); print ".PP"; next }
    { within = 0; as_is(1); print text($0) }
    END { as_is(0) }'
}

printf '.TH %s 1 "" "trainc %s" "trainc"\n.SH NAME\n%s \\- %s\n' \
  "$(printf %s "$name" | tr a-z A-Z)" "$version" "$name" "$summary"
"$program" --help all | page
commands=
[ "${1-}" != --commands ] || commands=$("$program" --help | sed -n 's/^  \([a-z][a-z]*\) .*/\1/p')
for command in $commands; do
  printf '.SH THE COMMAND %s\n' "$(printf %s "$command" | tr a-z A-Z)"
  "$program" "$command" --help all | sed '/^Exit status:$/,$d' | page | sed 's/^\.SH SYNOPSIS$/.PP/'
done
if [ "$name" = trainer ]; then
  printf '%s\n' '.SH OPTIMIZERS' 'This page is of a trainer made with \-\-optimizer sgd. Others have the options that' \
    '.BR trainc (1)' 'lists of their optimizer.'
fi
printf '.SH SEE ALSO\n'
for page in trainc trainc-compare trainc-data trainc-emit trainc-fill trainc-inspect trainc-opt trainc-run trainc-simulate trainer; do
  [ "$page" = "$name" ] || printf '.BR %s (1)\n' "$page"
done
