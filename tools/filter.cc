// The main of every pass: MLC_PASS is its name.
#include "pass/pass.h"

namespace mlc {
extern const Pass MLC_PASS;
}

int main(int argc, char **argv) { return mlc::filter(argc, argv, mlc::MLC_PASS); }
