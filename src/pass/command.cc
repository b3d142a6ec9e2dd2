#include "pass/command.h"

#include <pthread.h>
#include <unistd.h>

#include <boost/program_options.hpp>
#include <cerrno>
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

int parse_command(int argc, char **argv, const Usage &u, Options &options) {
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
  if (options.has("help")) return help(u), fflush(stdout) ? 1 : 0;
  if (options.has("version")) return printf("%s " MLC_VERSION "\n", u.tool.c_str()), fflush(stdout) ? 1 : 0;
  return -1;
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

bool write_all(const std::string &path, std::string_view text, std::string *error) {
  bool standard = path.empty() || path == "-";
  FILE *f = standard ? stdout : fopen(path.c_str(), "wb");
  bool ok = f && fwrite(text.data(), 1, text.size(), f) == text.size() && fflush(f) == 0;
  if (!ok) *error = strerror(errno);
  if (f && !standard && fclose(f) != 0 && ok) ok = false, *error = strerror(errno);
  return ok;
}

}  // namespace mlc
