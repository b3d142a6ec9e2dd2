#include "pass/command.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/program_options.hpp>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <new>

namespace mlc {

namespace po = boost::program_options;

static constexpr OptionSpec kCommon[] = {
    {"verbose,v", nullptr, "say on stderr what was done and what was not, and why"},
    {"time", nullptr, "print on stderr how long it took"},
    {"help,h", nullptr, "print this and exit"},
    {"version", nullptr, "print the version and exit"},
};

// All of s is a decimal integer of 64 bits.
static bool whole_number(const std::string &s, int64_t *v) {
  auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), *v);
  return error == std::errc() && end == s.data() + s.size();
}

static void help(const Usage &u) {
  printf("Usage: %s [OPTION]... %s\n%s.\n\nOptions:\n", u.tool.c_str(), u.operands, u.summary);
  auto line = [](const OptionSpec &o) {
    std::string name = o.name, spelt = "--" + name.substr(0, name.find(','));
    if (size_t comma = name.find(','); comma != std::string::npos) spelt = "-" + name.substr(comma + 1) + ", " + spelt;
    if (o.arg) spelt += std::string(" ") + o.arg;
    printf("  %-26s %s\n", spelt.c_str(), o.help);
  };
  for (const OptionSpec &o : u.options) line(o);
  for (const OptionSpec &o : kCommon) line(o);
}

// A closed descriptor is filled with one that cannot be written, so that no file that is opened takes its place.
static void fill_descriptors() {
  for (int fd = 0; fd < 3; fd++)
    if (fcntl(fd, F_GETFD) < 0 && errno == EBADF) open("/dev/null", O_RDONLY);
}

int parse_command(int argc, char **argv, const Usage &u, Options &options) {
  fill_descriptors();
  po::options_description all;
  auto declare = [&](const OptionSpec &o) {
    if (o.arg) all.add_options()(o.name, po::value<std::vector<std::string>>(), "");
    else all.add_options()(o.name, "");
  };
  for (const OptionSpec &o : u.options) declare(o);
  for (const OptionSpec &o : kCommon) declare(o);
  all.add_options()("operand", po::value<std::vector<std::string>>(), "");
  po::positional_options_description operands;
  operands.add("operand", -1);
  po::variables_map map;
  try {
    using namespace po::command_line_style;
    po::store(po::command_line_parser(argc, argv).options(all).positional(operands)
                  .style(allow_long | allow_short | allow_dash_for_short | long_allow_adjacent | long_allow_next |
                         short_allow_adjacent | short_allow_next | allow_sticky).run(), map);
  } catch (const po::error &e) {
    fprintf(stderr, "%s: error: %s; %s --help tells the options\n", u.tool.c_str(), e.what(), u.tool.c_str());
    return 2;
  }
  for (auto &[name, value] : map) {
    auto &to = name == "operand" ? options.files : options.values[name];
    if (auto *list = boost::any_cast<std::vector<std::string>>(&value.value())) to = *list;
  }
  if (options.has("help")) return help(u), finished(u.tool, 0);
  if (options.has("version")) return printf("%s " MLC_VERSION "\n", u.tool.c_str()), finished(u.tool, 0);
  return -1;
}

int64_t Options::whole(const std::string &name, int64_t otherwise, int64_t least) const {
  if (!has(name)) return otherwise;
  std::string s = get(name);
  int64_t v;
  if (!whole_number(s, &v)) throw UsageError{fmt::format("--{} {}: expected an integer", name, s)};
  if (v < least) throw UsageError{fmt::format("--{} {}: expected at least {}", name, s, least)};
  return v;
}

double Options::real(const std::string &name, double otherwise) const {
  if (!has(name)) return otherwise;
  std::string s = get(name);
  char *end = nullptr;
  double v = s.empty() || isspace(static_cast<unsigned char>(s[0])) ? 0 : strtod(s.c_str(), &end);
  if (!end || *end || !(v >= 0) || v == HUGE_VAL)
    throw UsageError{fmt::format("--{} {}: expected a number of at least 0", name, s)};
  return v;
}

std::map<std::string, std::string> Options::bindings() const {
  std::map<std::string, std::string> all_of_them;
  for (const std::string &s : all("bind")) {
    size_t eq = s.find('=');
    if (eq == 0 || eq == std::string::npos) throw UsageError{fmt::format("--bind {}: expected NAME=VALUE", s)};
    auto [it, added] = all_of_them.try_emplace(s.substr(0, eq), s.substr(eq + 1));
    if (!added && it->second != s.substr(eq + 1))
      throw UsageError{fmt::format("--bind {}: {} is {} already", s, it->first, it->second)};
  }
  return all_of_them;
}

std::map<std::string, int64_t> Options::sizes() const {
  std::map<std::string, int64_t> numbers;
  for (auto &[name, value] : bindings())
    if (!whole_number(value, &numbers[name]))
      throw UsageError{fmt::format("--bind {}={}: expected NAME=N, N an integer", name, value)};
  return numbers;
}

int finished(const std::string &tool, int rc) {
  errno = 0;
  bool failed = ferror(stdout);
  if ((fflush(stdout) == 0 && !failed) || rc) return rc;
  fprintf(stderr, "%s: error: cannot write: %s\n", tool.c_str(), errno ? strerror(errno) : "standard output failed");
  return 1;
}

static int run_in_memory(const std::function<int()> &f) {
  try {
    return f();
  } catch (const std::bad_alloc &) {
    fprintf(stderr, "%s: error: out of memory\n", program_invocation_short_name);
    return 1;
  }
}

int on_large_stack(const std::function<int()> &f) {
  struct Job { const std::function<int()> &f; int rc; } job = {f, 1};
  auto run = [](void *p) -> void * {
    Job &j = *static_cast<Job *>(p);
    j.rc = run_in_memory(j.f);
    return nullptr;
  };
  pthread_t thread;
  for (size_t size = size_t(1) << 30; size >= size_t(1) << 24; size >>= 1) {
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, size);
    int rc = pthread_create(&thread, &attr, run, &job);
    pthread_attr_destroy(&attr);
    if (rc == 0) return pthread_join(thread, nullptr), job.rc;
  }
  return run_in_memory(f);
}

// A file with something in it may be the one that was read: it is mapped, and nodes point into it.
static bool may_be_mapped(const char *path) {
  struct stat st;
  return (path ? stat(path, &st) : fstat(STDOUT_FILENO, &st)) == 0 && S_ISREG(st.st_mode) && st.st_size > 0;
}

bool write_all(const std::string &path, const std::function<void(const Sink &)> &print, std::string *error) {
  bool standard = path.empty() || path == "-", whole = may_be_mapped(standard ? nullptr : path.c_str());
  std::string text;
  if (whole) print([&](std::string_view piece) { text += piece; });
  errno = 0;
  FILE *f = standard ? stdout : fopen(path.c_str(), "wb");
  int why = f ? 0 : errno;
  auto check = [&](bool good) { if (!good && !why) why = errno ? errno : EIO; };
  auto write = [&](std::string_view piece) {
    if (!why) check(fwrite(piece.data(), 1, piece.size(), f) == piece.size());
  };
  if (f) {
    whole ? write(text) : print(write);
    check(fflush(f) == 0);
    if (!standard) check(fclose(f) == 0);
  }
  if (why) *error = standard ? strerror(why) : path + ": " + strerror(why);
  return !why;
}

bool write_all(const std::string &path, std::string_view text, std::string *error) {
  return write_all(path, [&](const Sink &sink) { sink(text); }, error);
}

}  // namespace mlc
