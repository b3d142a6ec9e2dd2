# both.sh TARGET [OPTION...]: tensorizes $INPUT, by the tool and by the script that it writes, compares what came out with
# what went in, and prints it compacted.
mlc-tensorize -v --target "$@" "$INPUT" -o tensorized.mlc || exit
mlc-tensorize --target "$@" --emit-schedule "$INPUT" -o steps.mlc || exit
if [ -s steps.mlc ] && grep -q '^schedule' steps.mlc; then
  mlc-schedule -f steps.mlc "$INPUT" | cmp - tensorized.mlc || exit
fi
mlc-equiv "$INPUT" tensorized.mlc | sed 's/: same: .*/: same/; s/^same: .*/same/'
mlc-compact tensorized.mlc -o compacted.mlc || exit
mlc-equiv "$INPUT" compacted.mlc >/dev/null || exit
sed -n -e '/^const/p' -e '/^\(graph\|kernel\)/,/^}/p' compacted.mlc
