// Made by test/bench/ulp.py --tables; do not edit.
#pragma once
#include <cstdint>

namespace mlc {

struct MathTable {
  const char *name;
  double bound;   // ULP
  uint64_t hash;  // of the results for 4096 inputs, as g++ compiles the text
};
inline const MathTable kMathTables[] = {
    {"exp.f32", 1.03, 0x21e99dd2a2362624u},
    {"expm1.f32", 2, 0x3f59eab8a098b891u},
    {"log.f32", 1, 0xfd722c9aea6579f1u},
    {"log1p.f32", 2.5, 0x091178ce6532fbccu},
    {"sigmoid.f32", 2.5, 0x1a40df44561b19e4u},
    {"softplus.f32", 3, 0xb80e7f8e4baa9bdfu},
    {"tanh.f32", 2.75, 0xf637bad51d6616a4u},
    {"erf.f32", 1.5, 0x5fa0a77df86afc24u},
    {"rsqrt.f32", 1.5, 0x8d21e7d430e8f4eau},
    {"asin.f32", 2.5, 0xc709cefcd94c3a42u},
    {"acos.f32", 1.5, 0xb121fef9889eae03u},
    {"atan.f32", 1.6, 0x8354eca83b9ae095u},
    {"sinh.f32", 2, 0x5fb20f0f1b824195u},
    {"cosh.f32", 1.5, 0xe7117ecd7a80882fu},
    {"asinh.f32", 3, 0xc87b6ba9cc20c053u},
    {"acosh.f32", 3, 0xd44c325b8444460bu},
    {"atanh.f32", 3.5, 0xcf01e92e764ba5e6u},
    {"sin.f32", 0.51, 0xd6e1133ae275ba54u},
    {"cos.f32", 0.51, 0x20ea2c7aff4c0b3bu},
    {"tan.f32", 0.51, 0x18b3e336e19d5fb1u},
    {"pow.f32", 0.51, 0xcac6c7f24c118d06u},
    {"exp.f64", 1, 0x65441fff51fad7eeu},
    {"expm1.f64", 2, 0xb441f45a9deb2b2eu},
    {"log.f64", 1, 0x96fee63f9dda3264u},
    {"log1p.f64", 2.5, 0x05f297aa4250fd79u},
    {"sigmoid.f64", 2.5, 0x66296804b5291285u},
    {"softplus.f64", 3, 0xcc1625667a98e59bu},
    {"tanh.f64", 1.5, 0x29259ac41f1856e4u},
    {"erf.f64", 1.5, 0x7d19d015e8797b2au},
    {"rsqrt.f64", 1.5, 0xcb769f7a18d693d0u},
    {"asin.f64", 2.5, 0x75438aef208f19eeu},
    {"acos.f64", 1.5, 0xf098a5b2d124077du},
    {"atan.f64", 2, 0xb4ad1cdc2a1a095eu},
    {"sinh.f64", 2, 0x086c8b4c9e89f962u},
    {"cosh.f64", 1.5, 0x1873e7deca02a3f1u},
    {"asinh.f64", 3, 0x130a1d1bfe533478u},
    {"acosh.f64", 3, 0x8a1a68be92d9d22du},
    {"atanh.f64", 3.5, 0xf397a62c29ed2b63u},
    {"sin.f64", 1, 0x208b7833fb44843cu},
    {"cos.f64", 1, 0xba3b1f49f9eb2049u},
    {"tan.f64", 2.5, 0xe7c5bfdd262312abu},
    {"pow.f64", 1.5, 0x0a18b478957758b9u},
    {"exp.fma.f32", 1.1, 0x888e1fb70c780539u},
    {"expm1.fma.f32", 2, 0x45e0bb2c90efe7cfu},
    {"log.fma.f32", 1, 0xfd722c9aea6579f1u},
    {"log1p.fma.f32", 2.5, 0x091178ce6532fbccu},
    {"sigmoid.fma.f32", 2.5, 0x1a40df44561b19e4u},
    {"softplus.fma.f32", 3, 0xb80e7f8e4baa9bdfu},
    {"tanh.fma.f32", 2.75, 0xf637bad51d6616a4u},
    {"erf.fma.f32", 1.5, 0x84f7d4f2b8d3b612u},
    {"asin.fma.f32", 2.5, 0xc709cefcd94c3a42u},
    {"acos.fma.f32", 1.5, 0xb121fef9889eae03u},
    {"atan.fma.f32", 1.6, 0xd8acc04d97edf169u},
    {"sinh.fma.f32", 2, 0xaee64965250f7164u},
    {"cosh.fma.f32", 1.6, 0x34a9af390ac4a8d2u},
    {"asinh.fma.f32", 3, 0xc87b6ba9cc20c053u},
    {"acosh.fma.f32", 3, 0xd44c325b8444460bu},
    {"atanh.fma.f32", 3.5, 0xcf01e92e764ba5e6u},
};

}  // namespace mlc
