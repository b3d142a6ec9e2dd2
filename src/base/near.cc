#include "base/near.h"

#include <algorithm>
#include <numeric>

namespace mlc {

namespace {

// Levenshtein's distance, letters of both cases alike.
size_t edits(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t(0));
  for (size_t i = 0; i < a.size(); i++) {
    size_t corner = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); j++) {
      bool same = tolower(static_cast<unsigned char>(a[i])) == tolower(static_cast<unsigned char>(b[j]));
      size_t best = std::min({row[j] + 1, row[j + 1] + 1, corner + !same});
      corner = row[j + 1], row[j + 1] = best;
    }
  }
  return row[b.size()];
}

}  // namespace

std::vector<std::string> near_names(std::string_view name, const std::vector<std::string> &known, size_t most) {
  constexpr size_t kLongest = 200;  // beyond it nothing is near
  std::vector<std::pair<size_t, size_t>> found;  // distance, position
  for (size_t i = 0; i < known.size() && name.size() <= kLongest; i++) {
    if (known[i].size() > kLongest) continue;
    size_t d = edits(name, known[i]), shorter = std::min(name.size(), known[i].size());
    bool within = shorter >= 3 && (known[i].find(name) != std::string::npos || name.find(known[i]) != std::string::npos);
    if ((d < name.size() && d <= std::max<size_t>(1, name.size() / 3)) || within) found.push_back({d, i});
  }
  std::stable_sort(found.begin(), found.end());
  std::vector<std::string> out;
  for (size_t k = 0; k < found.size() && k < most; k++) out.push_back(known[found[k].second]);
  return out;
}

}  // namespace mlc
