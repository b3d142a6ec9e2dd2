// mlc-test: ONNX's backend tests through one of the routes. Each case is a process of its own, bounded in time and
// memory.
#include <fmt/core.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "conformance.h"
#include "explain.h"
#include "pass/pass.h"
#include "pipeline.h"
#include "with_llvm.h"

namespace mlc {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr OptionSpec kOptions[] = {
    {"via", "ROUTE", "interp (operators, the default), loops, jit (kernels), cpp, obj (programs) or cuda-sim (CUDA C++ on the CPU)"},
    {"jobs,j", "N", "cases at a time; 1"},
    {"list", "FILE", "the cases that must pass, one a line: fails if one does not, tells of new ones"},
    {"update", nullptr, "add new ones to the list"},
    {"without", "PASS", "leave out simplify, fuse, lower, tensorize, tile, compact or plan; repeated"},
    {"target", "TARGET", "schedule kernels for a machine: the name of a target"},
    {"checked", nullptr, "of --via cpp and cuda-sim: let the programs check subscripts that are not proved inside"},
    {"explain", nullptr, "of what fails: the first node whose value differs"},
    {"python", "COMMAND", "of --explain: one that has the onnx package, and maybe onnxruntime; python3"},
    {"timeout", "S", "seconds that a case may take; 60"},
    {"memory", "MB", "memory that a case may use; 6144"},
    {"cache", "DIR", "of --via cpp and cuda-sim: keep compiled programs there, by the hash of their sources"},
    {"compiler", "COMMAND", "of --via cpp and cuda-sim; g++ -std=c++17 -O1 -Wall -Wextra -Wpedantic -Werror"},
};

struct Job {
  std::string folder, name;
  pid_t pid = -1;
  int pipe = -1;
  std::string said;  // by the process
  Clock::time_point start;
  bool late = false;
};

// The folder itself if it is a case, else the cases below it, in order.
void find_cases(const fs::path &at, std::vector<std::string> &out, int depth = 0) {
  std::error_code e;
  if (fs::exists(at / "model.onnx", e)) {
    out.push_back(at.string());
    return;
  }
  std::vector<fs::path> below;
  if (depth < 4)
    for (const auto &entry : fs::directory_iterator(at, e))
      if (entry.is_directory(e)) below.push_back(entry.path());
  std::sort(below.begin(), below.end());
  for (const fs::path &p : below) find_cases(p, out, depth + 1);
}

// node/test_add: what a list says.
std::string case_name(const std::string &folder) {
  fs::path p = fs::path(folder).lexically_normal();
  if (!p.has_filename()) p = p.parent_path();
  std::string parent = p.parent_path().filename().string();
  return parent.empty() ? p.filename().string() : parent + "/" + p.filename().string();
}

struct Explain {
  bool wanted;
  std::string python;
};

void start(Job &job, const CaseOptions &options, const Explain &why, int64_t seconds, int64_t megabytes) {
  int ends[2];
  if (pipe(ends)) return;
  fflush(stdout);
  fflush(stderr);
  job.start = Clock::now();
  job.pid = fork();
  if (job.pid == 0) {
    close(ends[0]);
    setpgid(0, 0);
    rlimit memory{rlim_t(megabytes + 1024) << 20, rlim_t(megabytes + 1024)
                                                      << 20};  // 1 GB is the stack, mapped and not used
    rlimit time{rlim_t(seconds + 1), rlim_t(seconds + 1)}, none{0, 0};
    setrlimit(RLIMIT_AS, &memory);
    setrlimit(RLIMIT_CPU, &time);
    setrlimit(RLIMIT_CORE, &none);
    CaseResult r = run_case(job.folder, options);
    if (why.wanted && r.kind == CaseResult::Failed) r.reason += "\n" + explain(job.folder, options, why.python);
    std::string line = char(r.kind) + r.reason;
    for (size_t done = 0; done < line.size();) {
      ssize_t n = write(ends[1], line.data() + done, line.size() - done);
      if (n <= 0) break;
      done += size_t(n);
    }
    _exit(0);
  }
  close(ends[1]);
  job.pipe = ends[0];
}

CaseResult finish(Job &job, int64_t seconds) {
  int status = 0;
  kill(-job.pid, SIGKILL);  // what it may have left running
  waitpid(job.pid, &status, 0);
  close(job.pipe);
  if (job.late || (WIFSIGNALED(status) && (WTERMSIG(status) == SIGXCPU)))
    return {CaseResult::Failed, fmt::format("took more than {} s", seconds)};
  if (!job.said.empty()) return {CaseResult::Kind(job.said[0]), job.said.substr(1)};
  if (WIFSIGNALED(status))
    return {CaseResult::Failed, fmt::format("killed by signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)))};
  return {CaseResult::Failed, "said nothing"};
}

int usage(const std::string &message) {
  fprintf(stderr, "mlc-test: error: %s\n", message.c_str());
  return 2;
}

int test(const Options &options) {
  CaseOptions how;
  std::string via = options.get("via", "interp");
  if (via == "interp") how.route = Route::Interp;
  else if (via == "loops") how.route = Route::Loops;
  else if (via == "jit") how.route = Route::Jit;
  else if (via == "obj") how.route = Route::Object;
  else if (via == "cpp") how.route = Route::Cpp;
  else if (via == "cuda-sim") how.route = Route::CudaSim;
  else return usage(fmt::format("--via {}: expected interp, loops, jit, cpp, obj or cuda-sim", via));
  if ((how.route == Route::Jit || how.route == Route::Object) && !with_llvm("mlc-test")) return 1;
  how.cache = options.get("cache");
  if (!how.cache.empty()) how.cache = fs::absolute(how.cache).string();
  how.compiler = options.get("compiler", how.compiler);
  how.without = options.all("without");
  how.checked = options.has("checked");
  how.target = options.get("target");
  for (const std::string &p : how.without)
    if (auto passes = usual_passes(PipeTarget{false, true}); std::none_of(passes.begin(), passes.end(), [&](const Pass *x) { return x->name == p; }))
      return usage(fmt::format("--without {}: expected simplify, fuse, lower, tensorize, tile, compact or plan", p));
  int64_t jobs = options.whole("jobs", 1, 1), seconds = options.whole("timeout", 60, 1);
  int64_t megabytes = options.whole("memory", 6144, 1);
  if (options.files.empty()) return usage("expected a DIR");
  bool verbose = options.has("verbose");

  std::vector<std::string> folders;
  for (const std::string &f : options.files) {
    size_t before = folders.size();
    find_cases(f, folders);
    if (folders.size() == before) return fprintf(stderr, "mlc-test: error: no case in %s\n", f.c_str()), 1;
  }
  std::vector<CaseResult> results(folders.size(), {CaseResult::Failed, "not started"});
  std::map<size_t, Job> running;
  size_t next = 0;
  while (next < folders.size() || !running.empty()) {
    while (next < folders.size() && int64_t(running.size()) < jobs) {
      Job &job = running[next];
      job.folder = fs::absolute(folders[next++]).string();
      start(job, how, {options.has("explain"), options.get("python", "python3")}, seconds, megabytes);
    }
    std::vector<pollfd> wait;
    for (auto &[i, job] : running) wait.push_back({job.pipe, POLLIN, 0});
    poll(wait.data(), wait.size(), 200);
    size_t k = 0;
    for (auto it = running.begin(); it != running.end(); k++) {
      Job &job = it->second;
      bool done = job.pid < 0;
      if (wait[k].revents) {
        char text[4096];
        ssize_t n = read(job.pipe, text, sizeof text);
        if (n > 0) job.said.append(text, size_t(n));
        else done = true;
      }
      if (Clock::now() - job.start > std::chrono::seconds(seconds)) job.late = done = true;
      if (!done) {
        ++it;
        continue;
      }
      if (job.pid > 0) results[it->first] = finish(job, seconds);
      it = running.erase(it);
    }
  }

  std::set<std::string> passed;
  size_t count[3] = {};
  for (size_t i = 0; i < folders.size(); i++) {
    const CaseResult &r = results[i];
    std::string name = case_name(folders[i]);
    if (r.kind == CaseResult::Passed) passed.insert(name), count[0]++;
    if (r.kind == CaseResult::Failed) count[1]++, fmt::print("{}: failed: {}\n", name, r.reason);
    if (r.kind == CaseResult::Skipped) {
      count[2]++;
      if (verbose) fmt::print("{}: skipped: {}\n", name, r.reason);
    }
  }
  bool bad = count[1] > 0;
  if (std::string path = options.get("list"); !path.empty()) {
    std::set<std::string> listed;
    std::ifstream in(path);
    if (!in && !options.has("update")) return fprintf(stderr, "mlc-test: error: %s cannot be read\n", path.c_str()), 1;
    for (std::string line; std::getline(in, line);)
      if (!line.empty() && line[0] != '#') listed.insert(line);
    bad = false;
    for (const std::string &name : listed)
      if (!passed.count(name)) bad = true, fmt::print("{}: is in {} and does not pass\n", name, path);
    std::vector<std::string> fresh;
    std::set_difference(passed.begin(), passed.end(), listed.begin(), listed.end(), std::back_inserter(fresh));
    if (options.has("update") && !fresh.empty()) {
      listed.insert(fresh.begin(), fresh.end());
      std::ofstream out(path);
      for (const std::string &name : listed) out << name << '\n';
      if (!out.flush()) return fprintf(stderr, "mlc-test: error: %s cannot be written\n", path.c_str()), 1;
    } else {
      for (const std::string &name : fresh) fmt::print("{}: passes and is not in {}\n", name, path);
    }
  }
  fmt::print("{} passed, {} failed, {} skipped\n", count[0], count[1], count[2]);
  return bad;
}

}  // namespace
}  // namespace mlc

int main(int argc, char **argv) {
  return mlc::tool_main(argc, argv, {"test", "Run cases of ONNX's backend tests", "DIR...", mlc::kOptions, mlc::test});
}
