# Writes IN as `extern const char mlc::NAME[]` into OUT.
file(READ ${IN} hex HEX)
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
string(REGEX REPLACE "(................................................................................)" "\\1\n" bytes "${bytes}")
file(WRITE ${OUT} "namespace mlc {\nextern const char ${NAME}[];\nconst char ${NAME}[] = {\n${bytes}0};\n}  // namespace mlc\n")
