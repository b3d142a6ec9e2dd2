// The functions of a CUDA program that move what lies on the host: NAME_run, NAME_arena_bytes, NAME_upload.
#pragma once
#include <unordered_map>

#include "emit/model.h"
#include "emit/unit.h"

namespace mlc {

struct CudaCodes {  // what NAME_run_device returns
  int context = 0, sizes = 0, arena = 0;
  std::unordered_map<Sym, int> null = {};  // of ports: a null pointer
};
struct CudaEntries {
  const CppModel &model;
  const Func &entry;
  const CudaCodes &codes;
  int64_t weight_bytes;  // 0: there are none
};

// `fixed`: the bytes of NAME_arena_bytes where no symbol is left; before, those of NAME_device_arena_bytes.
std::string cuda_entries(Unit &unit, const CudaEntries &e, int64_t *fixed);

}  // namespace mlc
