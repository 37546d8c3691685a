# SPDX-License-Identifier: Apache-2.0
#
# Completion of trainc's tools and of the trainers that it makes, for bash. Options, commands and the
# values to choose from are read from --help, which is made from their option tables.

_trainc() {
  local program=$1 word=$2 before=$3 command= help
  # options of a trainer and of trainc-data are those of the command
  [[ ${program##*/} = @(trainer|trainc-data) ]] && ((COMP_CWORD > 1)) && command=${COMP_WORDS[1]}
  if [[ ${program##*/} = @(trainer|trainc-data) && -z $command ]]; then
    help=$("$program" --help 2>/dev/null)
    mapfile -t COMPREPLY < <(compgen -W "$(sed -n 's/^  \([a-z]*\)  .*/\1/p' <<<"$help")" -- "$word")
    return
  fi
  help=$("$program" $command --help 2>/dev/null)
  if [[ $word = -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$(grep -oE -- '^ +(-[a-z], )?--?[a-z][a-z0-9-]*' <<<"$help" | sed 's/.* //')" -- "$word")
    return
  fi
  case $before in
  --target) mapfile -t COMPREPLY < <(compgen -W "cpu cuda" -- "$word") ;;
  --message-format) mapfile -t COMPREPLY < <(compgen -W "text json sarif" -- "$word") ;;
  --format) mapfile -t COMPREPLY < <(compgen -W "raw llm.c npy" -- "$word") ;;
  --split) mapfile -t COMPREPLY < <(compgen -W "gpt2 cl100k o200k" -- "$word") ;;
  --fit) mapfile -t COMPREPLY < <(compgen -W "crop stretch" -- "$word") ;;
  --leftovers) mapfile -t COMPREPLY < <(compgen -W "drop pad wrap" -- "$word") ;;
  --precision) mapfile -t COMPREPLY < <(compgen -W "f32 f64" -- "$word") ;;
  --loss | --optimizer) # the names before the explanation
    mapfile -t COMPREPLY < <(compgen -W "$(grep -E -- "^ +$before[ =]" <<<"$help" |
      grep -oE '\b(cross_entropy|mse|bce_with_logits|output|adamw|adam|adagrad|lamb|lion|rmsprop|sgd)\b' | sort -u)" -- "$word") ;;
  esac
  ((${#COMPREPLY[@]})) || mapfile -t COMPREPLY < <(compgen -f -- "$word")
}

complete -o filenames -F _trainc trainc trainc-run trainc-opt trainc-emit trainc-inspect trainc-compare trainc-fill trainc-data \
  trainc-check-gradient trainer
