#include "data/picture.h"

#include <dlfcn.h>
#include <leptonica/allheaders.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

#include <fmt/core.h>

namespace mlc {

namespace {

enum class Status : int64_t { Picture, NoPicture, TooLarge, NoLibrary };
struct Header {  // what the decoding process says first; behind a Picture come the samples
  Status status = Status::NoPicture;
  int64_t height = 0, width = 0;
};

constexpr rlim_t kSeconds = 60;
constexpr int64_t kLibraries = 256 << 20, kPerPixel = 64;  // bytes that decoding may take

int64_t samples_of(PixelFormat f) { return f == PixelFormat::Grayscale ? 1 : 3; }

// All bytes, by read or write; false where the other side is gone.
template <class Bytes, class F> bool all_bytes(F transfer, int fd, Bytes *p, size_t size) {
  while (size) {
    ssize_t n = transfer(fd, p, size);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    p += n, size -= size_t(n);
  }
  return true;
}

// ---- the decoding process

void limit(int what, rlim_t most) {
  rlimit now{};
  auto resource = __rlimit_resource(what);
  if (getrlimit(resource, &now)) return;
  now.rlim_cur = std::min(most, now.rlim_max);
  setrlimit(resource, &now);
}

// `more` bytes beyond what the process has mapped.
void limit_memory(int64_t more) {
  long pages = 0;
  FILE *f = fopen("/proc/self/statm", "r");
  if (!f) return;
  if (fscanf(f, "%ld", &pages) == 1) limit(RLIMIT_AS, rlim_t(pages) * rlim_t(sysconf(_SC_PAGESIZE)) + rlim_t(more));
  fclose(f);
}

struct Leptonica {
  decltype(&setMsgSeverity) set_severity;
  decltype(&pixReadHeaderMem) read_header;
  decltype(&pixReadMem) read;
  decltype(&pixConvertTo32) to_rgb;
  decltype(&pixGetDimensions) dimensions;
  decltype(&pixGetData) data;
  decltype(&pixGetWpl) words_per_line;

  bool load() {
    void *library = nullptr;
    for (const char *name : {"liblept.so.5", "libleptonica.so.6"})
      if (!library) library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    auto find = [&]<class F>(const char *name, F *function) {
      *function = library ? reinterpret_cast<F>(dlsym(library, name)) : nullptr;
      return *function != nullptr;
    };
    return find("setMsgSeverity", &set_severity) && find("pixReadHeaderMem", &read_header) &&
           find("pixReadMem", &read) && find("pixConvertTo32", &to_rgb) && find("pixGetDimensions", &dimensions) &&
           find("pixGetData", &data) && find("pixGetWpl", &words_per_line);
  }
};

bool is_supported(int format) {
  constexpr int kFormats[] = {IFF_BMP, IFF_JFIF_JPEG, IFF_JP2, IFF_PNG, IFF_PNM, IFF_WEBP};
  return std::find(std::begin(kFormats), std::end(kFormats), format) != std::end(kFormats) || L_FORMAT_IS_TIFF(format);
}

// One row; a pixel of Leptonica is 0xRRGGBBAA.
void convert(const l_uint32 *row, PixelFormat format, std::vector<unsigned char> &line) {
  size_t n = size_t(samples_of(format));
  for (size_t i = 0; i < line.size(); i += n, row++) {
    uint32_t r = *row >> 24, g = *row >> 16 & 255, b = *row >> 8 & 255;
    auto *to = &line[i];
    // 0.299 r + 0.587 g + 0.114 b in units of 2^-16, to the nearest
    if (format == PixelFormat::Grayscale) to[0] = (unsigned char)((r * 19595 + g * 38470 + b * 7471 + 32768) >> 16);
    else to[format == PixelFormat::BGR ? 2 : 0] = (unsigned char)r, to[1] = (unsigned char)g,
         to[format == PixelFormat::BGR ? 0 : 2] = (unsigned char)b;
  }
}

void decode(std::span<const std::byte> file, PixelFormat format, int64_t most, int to) {
  auto say = [&](Header h) { return all_bytes(write, to, reinterpret_cast<const char *>(&h), sizeof h); };
  Leptonica lept;
  if (!lept.load()) return void(say({Status::NoLibrary}));
  lept.set_severity(L_SEVERITY_NONE);
  limit_memory(kLibraries);
  auto *bytes = reinterpret_cast<const l_uint8 *>(file.data());
  l_int32 kind = 0, width = 0, height = 0, bits = 0, samples = 0, has_map = 0, found_width = 0, found_height = 0;
  bool failed = lept.read_header(bytes, file.size(), &kind, &width, &height, &bits, &samples, &has_map);
  if (failed || !is_supported(kind) || width <= 0 || height <= 0) return void(say({}));
  int64_t pixels = int64_t(width) * height;
  if (pixels > kMostPixels || pixels * samples_of(format) > most) return void(say({Status::TooLarge, height, width}));
  limit_memory(kLibraries + kPerPixel * pixels);
  PIX *picture = lept.read(bytes, file.size()), *rgb = picture ? lept.to_rgb(picture) : nullptr;
  if (!rgb || lept.dimensions(rgb, &found_width, &found_height, nullptr) || found_width != width ||
      found_height != height || !say({Status::Picture, height, width}))
    return void(say({}));
  std::vector<unsigned char> line(size_t(width * samples_of(format)));
  for (l_int32 y = 0; y < height; y++) {
    convert(lept.data(rgb) + ptrdiff_t(y) * lept.words_per_line(rgb), format, line);
    if (!all_bytes(write, to, line.data(), line.size())) return;
  }
}

// Closed when it goes.
struct Descriptor {
  int fd = -1;
  ~Descriptor() { close_it(); }
  void close_it() {
    if (fd >= 0) close(fd);
    fd = -1;
  }
};

}  // namespace

bool decode_picture(std::span<const std::byte> file, PixelFormat format, int64_t most, Picture *out,
                    std::string *error) {
  *out = {};
  int ends[2];
  if (pipe(ends)) return *error = std::strerror(errno), false;
  Descriptor from{ends[0]}, to{ends[1]};
  pid_t child = fork();
  if (child < 0) return *error = std::strerror(errno), false;
  if (!child) {
    from.close_it();
    signal(SIGPIPE, SIG_IGN);
    if (!freopen("/dev/null", "w", stderr)) _exit(0);
    limit(RLIMIT_CORE, 0);
    limit(RLIMIT_CPU, kSeconds);
    decode(file, format, most, to.fd);
    _exit(0);
  }
  to.close_it();
  Header h;
  bool told = all_bytes(read, from.fd, reinterpret_cast<char *>(&h), sizeof h);
  if (told && h.status == Status::Picture) {
    out->samples.resize(size_t(h.height * h.width * samples_of(format)));
    told = all_bytes(read, from.fd, out->samples.data(), out->samples.size());
  }
  from.close_it();
  int how = 0;
  while (waitpid(child, &how, 0) < 0 && errno == EINTR) {}
  if (WIFSIGNALED(how) && WTERMSIG(how) == SIGXCPU)
    return *error = fmt::format("decoding takes more than {} s", kSeconds), false;
  if (told && h.status == Status::NoLibrary)
    return *error = "liblept.so.5 is not installed (Debian: liblept5)", false;
  if (told && h.status == Status::TooLarge)
    return *error = fmt::format("a picture of {} x {} pixels: at most {} pixels, and {} bytes of samples", h.height,
                                h.width, kMostPixels, most),
           false;
  if (told && h.status == Status::Picture) out->height = h.height, out->width = h.width;
  else out->samples.clear();
  return true;
}

}  // namespace mlc
