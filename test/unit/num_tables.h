// Made by num_tables.py with numpy and ml_dtypes; do not edit.
#pragma once

#include <cstdint>

#include "num/dtype.h"

namespace mlc {

struct FloatTable {
  DType type;
  uint64_t decoded, f32, near32, near64, ints, loose;
};
// decoded: f32 bits of all codes (NaN: -1). The rest: codes of inputs; loose: near32 without saturation.
inline const FloatTable kFloatTables[] = {
    {DType::F16, 0x10dae78060ca10a5u, 0xec6cb1bd0c23687du, 0x458f546d11c3b407u,
     0x13310cef5c6c8ceau, 0x4159e9fbd10f76c0u, 0x458f546d11c3b407u},
    {DType::BF16, 0x18a158a19ebb25a5u, 0xe9f1851e8d4ab724u, 0x433c3d588ff6aec9u,
     0x4bc684170b929bf6u, 0x3a783c1abe2ed88au, 0x433c3d588ff6aec9u},
    {DType::F8E4M3FN, 0xabadcf9413cba985u, 0x4b28ba055c03cfc0u, 0x4ccfc22288332639u,
     0xbcad54bb410b04dau, 0x9ed0f62b96852961u, 0x0744d63b80cf064fu},
    {DType::F8E4M3FNUZ, 0x0fc053b789c60cadu, 0xe4f8ad4c8215d317u, 0x4b324ee230354acfu,
     0x68082a3c8f5fcc1au, 0xe6d3099c284ef657u, 0x8fd689dfc0983acfu},
    {DType::F8E5M2, 0x352e008378a0c565u, 0x658c4283ccd79060u, 0xd187ee7352975edeu,
     0x6014a900eb2ac796u, 0xa6fd605d7aa8a44du, 0x9ad3f447de0aed19u},
    {DType::F8E5M2FNUZ, 0x25df94ccd7707addu, 0x830f47fc912f949eu, 0x53cd13212788dcb2u,
     0xfce21ceb7c924392u, 0x44d1fb62595190b9u, 0xeae9b2bf0e0fd6a5u},
    {DType::F4E2M1, 0x8d3e5330d3bf6025u, 0xefdbdecfaf09c1a1u, 0x5796b51d670aa3ebu,
     0x198f52f3c08cea84u, 0xe4a2ef6719006004u, 0x5796b51d670aa3ebu},
};
inline const uint64_t kIntToF32 = 0xd396237580b45c4eu, kUintToF32 = 0x503158aab5cb97abu;

}  // namespace mlc
