#include "through.h"

#include <fmt/core.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace mlc {

namespace {

bool write_whole(int fd, std::string_view text) {
  while (!text.empty()) {
    ssize_t n = write(fd, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    text.remove_prefix(size_t(n));
  }
  return lseek(fd, 0, SEEK_SET) == 0;
}

bool read_whole(int fd, std::string *text) {
  char buffer[1 << 16];
  for (;;) {
    ssize_t n = read(fd, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return n == 0;
    text->append(buffer, size_t(n));
  }
}

}  // namespace

bool run_through(const std::string &command, std::string_view input, std::string *output, std::string *error,
                 int *status) {
  auto fail = [&] { return *error = strerror(errno), false; };
  int in = memfd_create("input", MFD_CLOEXEC), out[2];
  if (in < 0 || !write_whole(in, input) || pipe(out) != 0) return fail();
  fflush(stdout), fflush(stderr);
  pid_t child = fork();
  if (child < 0) return fail();
  if (child == 0) {
    dup2(in, 0), dup2(out[1], 1);
    close(out[0]), close(out[1]);
    execl("/bin/sh", "sh", "-c", command.c_str(), static_cast<char *>(nullptr));
    _exit(127);
  }
  close(in), close(out[1]);
  output->clear();
  bool got = read_whole(out[0], output);
  int why = errno, code = 0;
  close(out[0]);
  while (waitpid(child, &code, 0) < 0)
    if (errno != EINTR) return fail();
  if (!got) return errno = why, fail();
  if (status) *status = WIFEXITED(code) ? WEXITSTATUS(code) : 128 + WTERMSIG(code);
  if (WIFEXITED(code) && WEXITSTATUS(code) == 0) return true;
  *error = WIFEXITED(code) ? fmt::format("ended with {}", WEXITSTATUS(code))
                           : fmt::format("was ended by signal {}", WTERMSIG(code));
  return false;
}

}  // namespace mlc
