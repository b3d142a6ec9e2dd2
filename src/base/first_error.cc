#include "base/first_error.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace mlc {

std::string first_error(Diag &diag) {
  char *text = nullptr;
  size_t size = 0;
  FILE *to = open_memstream(&text, &size);
  diag.verbose = false;
  diag.print(to);  // FILE:LINE:COL: error: message [mlc-TOOL]
  fclose(to);
  std::string line(text, size);
  free(text);
  line.resize(std::min(line.find('\n'), line.size()));
  if (size_t end = line.rfind(" [mlc-"); end != line.npos) line.resize(end);
  if (size_t at = line.find(" error: "); at != line.npos) line.erase(at, strlen(" error:"));
  return line;
}

}  // namespace mlc
