#include "src/exposition/text_escape.h"

namespace vllm_metrics::inline v0 {
namespace {

void append_escaped(std::string& out, std::string_view text, bool quote) {
  for (const char c : text) {
    if (c == '\n') {
      out += "\\n";
      continue;
    }
#ifdef VLLM_METRICS_PLANTED_FAULT
    if (c == '\\') out += '\\';
#else
    if (c == '\\' || (quote && c == '"')) out += '\\';
#endif
    out += c;
  }
}

}  // namespace

void append_escaped_help(std::string& out, std::string_view text,
                         bool escape_quote) {
  append_escaped(out, text, escape_quote);
}

void append_escaped_label_value(std::string& out, std::string_view text) {
  append_escaped(out, text, true);
}

}  // namespace vllm_metrics::inline v0
