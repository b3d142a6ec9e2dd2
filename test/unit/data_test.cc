// Arrays, .npy files, the files of a module, comparison of results.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "data/compare.h"
#include "data/files.h"
#include "data/npy.h"

namespace mlc {
namespace {

namespace fs = std::filesystem;

template <class T> Array array(DType t, std::vector<int64_t> dims, std::vector<T> values) {
  Array a(t, std::move(dims));
  for (size_t i = 0; i < values.size(); i++) a.set(int64_t(i), scalar_of(t, values[i]));
  return a;
}
Array floats(std::vector<double> values, DType t = DType::F32) {
  int64_t n = int64_t(values.size());
  return array(t, {n}, std::move(values));
}

TEST(Array, SizesAreChecked) {
  constexpr int64_t kHuge = int64_t(1) << 40;
  EXPECT_EQ(element_count({}), 1);
  EXPECT_EQ(element_count(std::vector<int64_t>{2, 3, 4}), 24);
  EXPECT_EQ(element_count(std::vector<int64_t>{2, 0, 4}), 0);
  EXPECT_EQ(element_count(std::vector<int64_t>{2, -1}), -1);
  EXPECT_EQ(element_count(std::vector<int64_t>{kHuge, kHuge}), -1);
  EXPECT_EQ(element_count(std::vector<int64_t>{kHuge, kHuge, 0}), -1);
  EXPECT_EQ(array_bytes(DType::F64, std::vector<int64_t>{INT64_MAX}), -1);
  EXPECT_EQ(array_bytes(DType::I4, std::vector<int64_t>{3}), 2);
  EXPECT_EQ(array_bytes(DType::I2, std::vector<int64_t>{INT64_MAX}), -1);
  EXPECT_EQ(array_bytes(DType::Str, std::vector<int64_t>{3}), -1);
  EXPECT_THROW(Array(DType::F32, {kHuge, kHuge}), std::length_error);
  Array a(DType::F32, {2, 3});
  EXPECT_EQ(a.position(std::vector<int64_t>{1, 2}), 5);
  EXPECT_EQ(a.index_of(4), (std::vector<int64_t>{1, 1}));
  a.set(4, Scalar::of_f32(1.5f));
  EXPECT_EQ(a.as<float>()[4], 1.5f);
  EXPECT_EQ(cast(a, DType::I4).get(4).as_int(), 1);
}

std::string npy(std::string header, std::string data, int version = 1) {
  std::string s =
      std::string("\x93NUMPY") + char(version) + '\0' + char(header.size() & 0xff) + char(header.size() >> 8);
  if (version > 1) s += std::string(2, '\0');
  return s + header + data;
}
template <class T> std::string raw(std::vector<T> v) {
  return {reinterpret_cast<const char *>(v.data()), v.size() * sizeof(T)};
}
std::string read_error(const std::string &file, Array *a, DType want = DType::Invalid) {
  std::string error;
  bool good = read_npy(std::as_bytes(std::span(file)), want, a, &error);
  EXPECT_EQ(good, error.empty());
  return error;
}

TEST(Npy, ReadsWhatNumpyWrites) {
  // numpy.save of numpy.arange(6, dtype="<f4").reshape(2, 3), byte by byte.
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }";
  header += std::string(117 - header.size(), ' ') + '\n';
  std::string file = npy(header, raw<float>({0, 1, 2, 3, 4, 5}));
  Array a;
  ASSERT_EQ(read_error(file, &a), "");
  EXPECT_EQ(a.type, DType::F32);
  EXPECT_EQ(a.dims, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(a.as<float>()[5], 5.0f);
  EXPECT_EQ(write_npy(a), file);
  // Column-major, big-endian, version 2; any order of keys; Python 2's longs.
  ASSERT_EQ(
      read_error(npy("{'fortran_order': True, 'shape': (2L, 3L), 'descr': '<i2'}", raw<int16_t>({0, 3, 1, 4, 2, 5}), 2),
                 &a),
      "");
  for (int i = 0; i < 6; i++) EXPECT_EQ(a.get(i).as_int(), i);
  ASSERT_EQ(read_error(npy("{'descr': '>i2', 'fortran_order': False, 'shape': (1,)}", std::string("\1\2", 2), 3), &a),
            "");
  EXPECT_EQ(a.get(0).as_int(), 258);
  ASSERT_EQ(read_error(npy("{'descr': '|b1', 'fortran_order': False, 'shape': ()}", "\7"), &a), "");
  EXPECT_EQ(a.rank(), 0u);
  EXPECT_EQ(int(a.bytes[0]), 1);
  ASSERT_EQ(read_error(npy("{'descr': '<f8', 'fortran_order': True, 'shape': (0, 3)}", ""), &a), "");
  EXPECT_EQ(a.size(), 0);
}

TEST(Npy, TypesThatNumpyLacksAreWrittenAsTheirBits) {
  for (DType t : {DType::BF16, DType::F8E4M3FN, DType::F8E5M2FNUZ, DType::F8E8M0, DType::F4E2M1, DType::U4, DType::I4,
                  DType::I2, DType::U2, DType::Bool, DType::F16, DType::U64}) {
    Array a = array<double>(t, {3}, {1, 2, 1}), b;
    std::string error, file = write_npy(a);
    ASSERT_TRUE(read_npy(std::as_bytes(std::span(file)), t, &b, &error)) << dtype_name(t) << error;
    EXPECT_EQ(b.type, t);
    EXPECT_EQ(a.bytes, b.bytes) << dtype_name(t);
  }
  Array a;
  EXPECT_EQ(read_error(npy("{'descr': '<V2', 'fortran_order': False, 'shape': (1,)}", raw<uint16_t>({0x3f80})), &a,
                       DType::BF16),
            "");
  EXPECT_EQ(a.get(0).as_f32(), 1.0f);
  EXPECT_EQ(read_error(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1,)}", raw<float>({1})), &a, DType::F64),
            "npy: expected elements of f64, found f32 ('<f4')");
}

TEST(Npy, Strings) {
  Array a(DType::Str, {2, 2}), b;
  a.strings = {"", "b", "na\u00efve", "\U0001f600"};
  std::string error, file = write_npy(a), header = "{'descr': '<U5', 'fortran_order': False, 'shape': (2, 2), }";
  EXPECT_EQ(file.substr(10, header.size()), header);
  ASSERT_TRUE(read_npy(std::as_bytes(std::span(file)), DType::Invalid, &b, &error)) << error;
  EXPECT_EQ(b.type, DType::Str);
  EXPECT_EQ(b.dims, a.dims);
  EXPECT_EQ(b.strings, a.strings);
  std::string header2 = "{'descr': '>U1', 'fortran_order': True, 'shape': (2, 2)}";
  ASSERT_EQ(read_error(npy(header2, std::string("\0\0\0a\0\0\0b\0\0\0c\0\0\0d", 16)), &a), "");
  EXPECT_EQ(a.strings, (std::vector<std::string>{"a", "c", "b", "d"}));
  a = Array(DType::Str, {1});
  a.strings = {"\xff\xfe"};  // no UTF-8
  file = write_npy(a);
  ASSERT_TRUE(read_npy(std::as_bytes(std::span(file)), DType::Str, &b, &error)) << error;
  EXPECT_EQ(b.strings[0], "\ufffd\ufffd");
  EXPECT_EQ(read_error(npy("{'descr': '<U1', 'fortran_order': False, 'shape': (1,)}", "abcd"), &a, DType::F32),
            "npy: expected elements of f32, found str ('<U1')");
  for (const char *bad : {"{'descr': '<U1', 'fortran_order': False, 'shape': (2,)}",
                          "{'descr': '<U0', 'fortran_order': False, 'shape': (1000000000000,)}",
                          "{'descr': '<U999999999', 'fortran_order': False, 'shape': (9999999999999,)}"})
    EXPECT_NE(read_error(npy(bad, "abcd"), &a).find("do not fit the shape"), std::string::npos);
}

TEST(Compare, Strings) {
  Array a(DType::Str, {2}), b = a;
  a.strings = b.strings = {"x", "y"};
  EXPECT_TRUE(compare(a, b, Tolerance::exact()).same());
  b.strings[1] = "z";
  EXPECT_EQ(describe(compare(a, b, Tolerance::exact()), "t", b),
            "t: element [1]: expected \"z\", found \"y\"; 1 of 2 differ");
}

TEST(Npy, HostileFiles) {
  struct {
    std::string file, error;
  } rows[] = {
      {"", "npy: no npy file"},
      {"\x93NUMPX\1\0aaaaaaaa", "npy: no npy file"},
      {npy("{}", "", 9), "npy: version 9, expected 1 to 3"},
      {std::string("\x93NUMPY\1\0\xff\xff{}", 12), "npy: the header is cut off"},
      {std::string("\x93NUMPY\2\0\xff\xff\xff\xff{}", 14), "npy: the header is cut off"},
      {npy("{'descr': '<f4'}", ""), "npy: the header is malformed"},
      {npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1,)", ""), "npy: the header is malformed"},
      {npy("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}", ""), "npy: the header is malformed"},
      {npy("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}", ""),
       "npy: the header is malformed"},
      {npy("{'descr': '<f4', 'fortran_order': 1, 'shape': (1,)}", ""), "npy: the header is malformed"},
      {npy("{'descr': '<f4', 'evil': 1}", ""), "npy: unknown key 'evil' in the header"},
      {npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}", ""),
       "npy: structured elements, expected numbers"},
      {npy("{'descr': '<c8', 'fortran_order': False, 'shape': (1,)}", "12345678"),
       "npy: elements '<c8' are not supported"},
      {npy("{'descr': '|O', 'fortran_order': False, 'shape': (1,)}", ""), "npy: elements '|O' are not supported"},
      {npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000,)}", "abcd"),
       "npy: expected 4000000000000 bytes of elements, found 4"},
      {npy("{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296)}", ""),
       "npy: expected fewer than 2^63 bytes of elements, found 0"},
      {npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1,)}", "abcde"),
       "npy: expected 4 bytes of elements, found 5"},
  };
  Array a;
  for (auto &r : rows) EXPECT_EQ(read_error(r.file, &a), r.error);
  std::string dims;
  for (int i = 0; i < 100; i++) dims += "1,";
  EXPECT_EQ(read_error(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (" + dims + ")}", "abcd"), &a),
            "npy: the header is malformed");
  // Every prefix and every changed byte of a good file: no crash.
  std::string good = write_npy(floats({1, 2, 3}));
  for (size_t i = 0; i < good.size(); i++) {
    EXPECT_NE(read_error(good.substr(0, i), &a), "");
    for (char c : {'\0', '\xff', '(', '9', '\''}) {
      std::string bad = good, error;
      bad[i] = c;
      read_npy(std::as_bytes(std::span(bad)), DType::Invalid, &a, &error);
    }
  }
}

class FilesTest : public testing::Test {
 protected:
  FilesTest() : root(fs::temp_directory_path() / ("mlc-files-" + std::to_string(getpid()))) {
    fs::remove_all(root);
    for (const char *dir : {"a", "b/sub", "outside"}) fs::create_directories(root / dir);
    write("b/w.bin", "hello");
    write("b/sub/v.bin", "abc");
    write("outside/secret", "no");
    fs::create_symlink(root / "outside/secret", root / "a/leak");
    fs::create_symlink(root / "outside", root / "a/dir");
    fs::create_symlink("w.bin", root / "b/alias");
    unsetenv("MLC_PATH");
  }
  ~FilesTest() override { fs::remove_all(root); }
  void write(const std::string &name, const std::string &text) { std::ofstream(root / name) << text; }
  std::string error_of(Files &files, std::string_view path, int64_t bytes = -1, std::string_view sha = "") {
    std::string error;
    const Mapped *m = files.open(path, bytes, sha, &error);
    EXPECT_EQ(m != nullptr, error.empty());
    return error;
  }
  fs::path root;
};

TEST_F(FilesTest, AreFoundInOrder) {
  Files files({(root / "a").string(), (root / "b").string()});
  std::string error;
  const Mapped *m = files.open("w.bin", 5, "", &error);
  ASSERT_TRUE(m) << error;
  EXPECT_EQ(m->bytes().size(), 5u);
  EXPECT_EQ(files.open("w.bin", 5, "", &error), m);
  EXPECT_EQ(error_of(files, "sub/v.bin"), "");
  EXPECT_EQ(error_of(files, "alias"), "");  // a link that stays inside
  std::span<const std::byte> part;
  EXPECT_TRUE(slice(*m, 1, 4, &part));
  EXPECT_EQ(char(part[0]), 'e');
  EXPECT_TRUE(slice(*m, 5, 0, &part));
  for (auto [offset, n] : {std::pair<int64_t, int64_t>{1, 5}, {-1, 1}, {6, 0}, {1, INT64_MAX}, {INT64_MAX, 1}, {0, -1}})
    EXPECT_FALSE(slice(*m, offset, n, &part));
  write("a/w.bin", "first");
  Files again({(root / "a").string(), (root / "b").string()});
  EXPECT_EQ(char(again.open("w.bin", -1, "", &error)->bytes()[0]), 'f');
  // The module's folder, and $MLC_PATH before it.
  Files module({}, (root / "b/model.mlc").string());
  EXPECT_EQ(char(module.open("w.bin", -1, "", &error)->bytes()[0]), 'h');
  setenv("MLC_PATH", (":" + (root / "a").string()).c_str(), 1);
  Files env({}, (root / "b/model.mlc").string());
  EXPECT_EQ(char(env.open("w.bin", -1, "", &error)->bytes()[0]), 'f');
}

TEST_F(FilesTest, NeverAboveAFolder) {
  Files files({(root / "a").string()});
  for (const char *path : {"", "/etc/passwd", "..", "../b/w.bin", "x/../../b/w.bin", "x/.."})
    EXPECT_EQ(error_of(files, path), "file \"" + std::string(path) + "\": expected a relative path without `..`");
  EXPECT_NE(error_of(files, std::string_view("a\0b", 3)), "");
  for (const char *path : {"leak", "dir/secret"})
    EXPECT_EQ(error_of(files, path),
              "file \"" + std::string(path) + "\": a link leads out of " + (root / "a").string());
  EXPECT_EQ(error_of(files, "nothing"), "file \"nothing\": not found in " + (root / "a").string() + ", .");
  EXPECT_EQ(error_of(files, "."), "file \".\": a link leads out of " + (root / "a").string());
}

TEST_F(FilesTest, AreTheRightOnes) {
  Files files({(root / "b").string()});
  std::string hello = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824", empty(64, '0');
  EXPECT_EQ(error_of(files, "w.bin", 5, hello), "");
  EXPECT_EQ(error_of(files, "w.bin", 6), "file \"w.bin\": expected 6 bytes, found 5");
  EXPECT_EQ(error_of(files, "w.bin", 5, empty), "file \"w.bin\": expected sha256 " + empty + ", found " + hello);
  EXPECT_EQ(error_of(files, "sub"), "file \"sub\": not a regular file");
  EXPECT_EQ(sha256_of({}), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  // A sparse file of 2 GB: opened without being read, and not hashed.
  write("b/big", "");
  fs::resize_file(root / "b/big", uint64_t(2) << 30);
  EXPECT_EQ(error_of(files, "big", int64_t(2) << 30, empty), "");
  write("b/none", "");
  EXPECT_EQ(error_of(files, "none", 0), "");
}

TEST_F(FilesTest, NpyFiles) {
  std::string path = (root / "x.npy").string(), error;
  Array a = floats({1, 2.5}), b;
  ASSERT_TRUE(write_npy_file(path, a, &error));
  ASSERT_TRUE(read_npy_file(path, DType::F32, &b, &error));
  EXPECT_EQ(a.bytes, b.bytes);
  EXPECT_FALSE(read_npy_file((root / "y.npy").string(), DType::F32, &b, &error));
  EXPECT_EQ(error, (root / "y.npy: No such file or directory").string());
  EXPECT_FALSE(write_npy_file((root / "no/y.npy").string(), a, &error));
}

constexpr double kNan = NAN, kInf = INFINITY;

TEST(Compare, Exact) {
  EXPECT_TRUE(compare(floats({1, kNan, kInf}), floats({1, -kNan, kInf}), Tolerance::exact()).same());
  EXPECT_FALSE(compare(floats({0.0}), floats({-0.0}), Tolerance::exact()).same());
  EXPECT_TRUE(compare(floats({0.0}), floats({-0.0}), Tolerance::exact(true)).same());
  Array found = array<double>(DType::F32, {2, 2}, {1, 2, 3.5, 5}),
        expected = array<double>(DType::F32, {2, 2}, {1, 2, 3, 4.5});
  Comparison c = compare(found, expected, Tolerance::exact());
  EXPECT_EQ(c.different, 2);
  EXPECT_EQ(c.index, (std::vector<int64_t>{1, 0}));
  EXPECT_EQ(describe(c, "y", expected),
            "y[1, 0]: expected 3.0, found 3.5; 2 of 4 elements differ, the largest difference is 0.5");
  c = compare(floats({1}), floats({1}, DType::F64), Tolerance::exact());
  EXPECT_EQ(describe(c, "y", found), "y: expected f64[1], found f32[1]");
  EXPECT_FALSE(compare(floats({kNan}), floats({1}), Tolerance::exact()).same());
  Array ints = array<int64_t>(DType::I64, {2}, {INT64_MAX, 1}), more = array<int64_t>(DType::I64, {2}, {INT64_MIN, 1});
  EXPECT_EQ(compare(ints, more, Tolerance::close(0, 10)).different, 1);
  Array packed = array<int64_t>(DType::U4, {3}, {1, 2, 3}), other = array<int64_t>(DType::U4, {3}, {1, 9, 3});
  EXPECT_EQ(compare(packed, other, Tolerance::exact()).first, 1);
}

TEST(Compare, Close) {  // as numpy.allclose(found, expected, rtol, atol, equal_nan=True)
  struct {
    double found, expected, rtol, atol;
    bool same;
  } rows[] = {
      {1.001, 1, 1e-3, 1e-5, true}, {1.0021, 1, 1e-3, 1e-3, false}, {kInf, kInf, 0, 0, true},
      {kInf, -kInf, 1, 1, false},   {kInf, 1e300, 1, 1, false},     {1e300, kInf, 1, 1, false},
      {kNan, kNan, 0, 0, true},     {kNan, 1, 1, 1, false},         {1, kNan, 1, 1, false},
      {0, 1e-8, 0, 1e-7, true},     {-0.0, 0.0, 0, 0, true},
  };
  for (auto &r : rows) {
    Array found = floats({r.found}, DType::F64), expected = floats({r.expected}, DType::F64);
    EXPECT_EQ(compare(found, expected, Tolerance::close(r.rtol, r.atol)).same(), r.same) << r.found << " " << r.expected;
  }
}

TEST(Compare, OfSuite) {  // the rule of onnx/backend/test/runner: two steps of bf16 are 2^-6 of the value
  auto same = [](DType t, double found, double rtol) {
    return compare(floats({found}, t), floats({1}, t), Tolerance::of_suite(t, rtol, 1e-7)).same();
  };
  EXPECT_TRUE(same(DType::BF16, 1.015625, 1e-3));
  EXPECT_FALSE(same(DType::BF16, 1.0234375, 1e-3));
  EXPECT_TRUE(same(DType::BF16, 1.0234375, 0.05));
  EXPECT_FALSE(same(DType::F16, 1.0078125, 1e-3));
  EXPECT_FALSE(same(DType::F32, 1.0078125, 1e-3));
}

TEST(Compare, Ulp) {
  auto ulp = [](DType t, double a, double b) { return ulp_distance(t, scalar_of(t, a), scalar_of(t, b)); };
  EXPECT_EQ(ulp(DType::F32, 1, 1 + 0x1p-23), 1);
  EXPECT_EQ(ulp(DType::F32, 1, 1 - 0x1p-24), 1);
  EXPECT_EQ(ulp(DType::F32, -0x1p-149, 0x1p-149), 2);
  EXPECT_EQ(ulp(DType::F32, 0, -0.0), 0);
  EXPECT_EQ(ulp(DType::F32, 0x1.fffffep127, kInf), 1);
  EXPECT_EQ(ulp(DType::F16, 65504, kInf), 1);
  EXPECT_EQ(ulp(DType::F64, -1, 1), double(2 * 0x3ff0000000000000));
  EXPECT_EQ(ulp(DType::BF16, 1, 1.0078125), 1);
  EXPECT_EQ(ulp(DType::F8E8M0, 1, 4), 2);
  EXPECT_EQ(ulp(DType::F32, kNan, kNan), 0);
  EXPECT_EQ(ulp(DType::F32, kNan, 1), kInf);
  EXPECT_EQ(ulp(DType::I8, -3, 4), 7);
  EXPECT_TRUE(compare(floats({1}), floats({1 + 0x1p-22}), Tolerance::within_ulp(2)).same());
  EXPECT_FALSE(compare(floats({1}), floats({1 + 0x1p-22}), Tolerance::within_ulp(1)).same());
}

}  // namespace
}  // namespace mlc
