// Planned graphs with control flow and sizes that are data, as mlc-plan writes them.
#include "emit_program.h"

namespace mlc {
namespace {

Array integer(int64_t v) {
  Array a(DType::I64, {});
  a.set(0, Scalar::of_int(v));
  return a;
}

TEST(EmitSizes, LoopsCountTheirTurns) {
  EmitProgram p(R"(mlc 1

kernel @next(p: f32[], q: f32[]) -> (r: f32[]) {
  compute r[] = p[] + q[]
}

kernel @less(r: f32[], most: f32[]) -> (go: bool[]) {
  compute go[] = r[] < most[]
}

graph @main(most: f32[], scratch arena: u8[704] {align = 64}) -> (turns: index, last: f32[], list: f32[turns] {capacity = [100]}) {
  attr arena_bytes = 704
  call fill(1.0) -> last
  alloc q: f32[] = arena at 448
  call fill(1.0) -> q
  alloc go: bool[] = arena at 512
  call @less(q, most) -> go
  alloc all: f32[100] = arena at 0
  alloc turn: i64[] = arena at 576
  call fill(0) -> turn
  while go[] && index(turn[]) < 100 {
    i: index = index(turn[])
    assume i >= 0 && i < 100
    view place: f32[] = all[i]
    call Copy(last) -> place
    alloc r: f32[] = arena at 640
    call @next(last, q) -> r from "/next"
    call @less(r, most) -> go
    call Copy(q) -> last
    call Copy(r) -> q
    call fill(i64(i + 1)) -> turn
  }
  turns: index = index(turn[])
  alloc found: f32[turns] = all at 0
  call Copy(found) -> list
}
)");
  ASSERT_TRUE(p.ok);
  Array most(DType::F32, {});
  for (double limit : {0.0, 2.0, 5000.0, 1e38}) {
    most.set(0, scalar_of(DType::F32, limit));
    expect_same(p, {most});
  }
}

// What a caller gives is too small, or what the data say is out of bounds: a code, and nothing is touched.
TEST(EmitSizes, DataBeyondTheBounds) {
  EmitProgram p(R"(mlc 1

kernel @iota(k: index) -> (y: i64[2, k]) {
  compute y[i in 2, j in k] = i64(i * k + j)
}

graph @main[n](x: f32[n], size: i64[], scratch arena: u8[64 * n + 64] {align = 64}) -> (k: index, y: i64[2, k] {capacity = [2, 4 * n]}, z: i64[2, k]) {
  attr arena_bytes = 64 * n + 64
  k: index = index(size[])
  assume k >= 0 && k <= 4 * n
  alloc t: i64[2, k] = arena at 0
  call @iota(k) -> t
  call Copy(t) -> y
  if k % 2 == 0 {
    call Copy(t) -> z
  } else {
    call fill(i64(k)) -> z
  }
}
)");
  ASSERT_TRUE(p.ok);
  Array x(DType::F32, {3});
  for (int64_t k : {0, 1, 8, 12}) expect_same(p, {x, integer(k)});
  EmitScratch dir;
  CppModel model = emit(p, dir);
  EXPECT_NE(model.header.find("room at y, in elements; n * 8 are enough"), std::string::npos) << model.header;
  dir.put("use.cc", R"(#include <stdio.h>
#include <stdlib.h>
#include "p.h"
int main(int, char **argv) {
  float x[3] = {};
  int64_t size = strtoll(argv[1], nullptr, 10), room = strtoll(argv[2], nullptr, 10), arena[32] = {};
  int64_t *y = new int64_t[size_t(room)], *z = new int64_t[60];
  p_in in = {};
  in.x = x, in.size = &size, in.dims.n = 3;
  p_out out = {};
  out.y = y, out.y_capacity = room, out.z = z, out.z_capacity = 60;
  p_context context;
  p_init(&context, nullptr, 0, nullptr);
  alignas(64) static unsigned char memory[4096];
  if (p_arena_bytes(&in.dims, 1) > sizeof memory) return 2;
  int code = p_run(&context, &in, &out, memory);
  printf("%s\n", p_error(code));
  if (!code) printf("%d %d %d\n", int(out.k), int(out.y_dims[1]), int(out.z_dims[1]));
  delete[] y;
  delete[] z;
  return 0 * int(arena[0]);
}
)");
  dir.sh(fmt::format("g++ {} -fsanitize=address,undefined -fno-sanitize-recover=all -o use p.cc use.cc", kFlags));
  EXPECT_EQ(dir.sh("./use 5 10"), "no error\n5 5 5\n");
  EXPECT_EQ(dir.sh("./use 5 9"), "an output has too little room\n");
  std::string bound = "a condition does not hold: expected k >= 0 && k <= 4 * n\n";
  EXPECT_EQ(dir.sh("./use 13 100"), bound);
  for (const char *wild : {"-1", "9223372036854775807", "-9223372036854775808"}) {
    std::string said = dir.sh(fmt::format("./use {} 24", wild));
    EXPECT_TRUE(said == bound || said == "an output has too little room\n") << said;
  }
}

}  // namespace
}  // namespace mlc
