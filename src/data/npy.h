// Arrays as .npy files (numpy's format, versions 1 to 3). Input is not trusted: every size is checked against the bytes
// that are there before anything is allocated.
//
// numpy has no bf16, f8, f4 or sub-byte integers. Such arrays are written as the integers of their bits, one element
// each: bf16 as u16; f8 and f4 as u8; u4 and u2 as u8, i4 and i2 as i8 (their values). Reading gives them back to who
// asks for the type. Strings are numpy's 'U'; what is no UTF-8 in them is written as U+FFFD.
#pragma once
#include <string>

#include "data/array.h"

namespace mlc {

// `want`: the type that the array is to have; u16, u8, i8 and numpy's raw V2, V1 become what they stand for (see
// above), any other type that differs is an error. Invalid: the type that the file says.
bool read_npy(std::span<const std::byte> file, DType want, Array *out, std::string *error);
bool read_npy_file(const std::string &path, DType want, Array *out, std::string *error);  // `error` names the path

std::string write_npy(const Array &a);  // version 1.0, row-major
bool write_npy_file(const std::string &path, const Array &a, std::string *error);

}  // namespace mlc
