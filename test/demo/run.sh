#!/bin/bash
# A trained network through the whole pipe, stage by stage, and what comes out run over real images: run.sh [--check]
# Everything that it makes stays in $BUILD/demo. --check ends with a count, as a test does.
set -euo pipefail
cd "$(dirname "$0")/../.."
root=$PWD
build=$root/${BUILD:-build}
export PATH=$build/bin:$PATH
demo=$build/demo
rm -rf "$demo" && mkdir -p "$demo" && cd "$demo"
cp "$root"/test/demo/digits_* .

if [ -t 1 ]; then bold=$'\e[1m' dim=$'\e[2m' plain=$'\e[0m'; else bold='' dim='' plain=''; fi
title() { printf '\n%s%s%s\n' "$bold" "$1" "$plain"; }
now() { echo "${EPOCHREALTIME/[.,]/}"; }  # microseconds

stage() {  # OUTPUT COMMAND: runs it, prints it with the lines that it made and the milliseconds that it took
  local start lines
  start=$(now)
  sh -c "$2"
  local us=$(($(now) - start))
  lines=$(cat $1 | wc -l)
  printf '  %-64s %5d lines %6d.%d ms\n' "$2" "$lines" $((us / 1000)) $((us % 1000 / 100))
}
show() {  # FILE SED-SCRIPT: a part of a stage's text, long lines cut
  sed -n "$2" "$1" | sed -E 's/^(.{112}).{3,}/\1.../' | sed "s/^/    $dim/; s/\$/$plain/"
}

title 'digits_cnn.onnx, 8 kB, trained on 1437 images of handwritten digits; stage by stage (files in build/demo)'
stage 1-import.mlc   'mlc-import digits_cnn.onnx >1-import.mlc'
show  1-import.mlc   '/^graph/,/^}/p'
stage 2-simplify.mlc 'mlc-simplify 1-import.mlc >2-simplify.mlc'
stage 3-fuse.mlc     'mlc-fuse 2-simplify.mlc >3-fuse.mlc'
show  3-fuse.mlc     '/^graph/,/^}/p'
stage 4-lower.mlc    'mlc-lower 3-fuse.mlc >4-lower.mlc'
show  4-lower.mlc    '/^kernel/,/^}/p'
stage 5-plan.mlc     'mlc-plan 4-lower.mlc >5-plan.mlc'
show  5-plan.mlc     '/^graph/,/^}/p'
stage 'out/*.h out/*.cc' 'mlc-codegen --name digits --main -o out 5-plan.mlc'

title 'the emitted C++ with g++ -O2'
main=$(basename out/*_main.cc .cc)
stage 'out/*.cc' "g++ -std=c++17 -O2 -Wall -Wextra -Wpedantic -Werror -o $main out/*.cc"

title '200 images that it has never seen'
python3 "$root/test/demo/images.py" shape digits_test_images.npy 200 1 8 8 >images.npy
"./$main" --repeat 20 images.npy -o logits.npy | tee run.txt
awk '{ printf "%.1f us an image\n", $2 / 200 }' run.txt
python3 "$root/test/demo/images.py" report images.npy digits_test_labels.npy logits.npy | tee -a run.txt

if [ "${1:-}" = --check ]; then
  grep -q '^197 of 200 right' run.txt || { echo 'expected 197 of 200 right'; echo '0 passed, 1 failed'; exit 1; }
  echo '1 passed, 0 failed'
fi
