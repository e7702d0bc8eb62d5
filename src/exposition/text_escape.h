#pragma once

#include <string>
#include <string_view>

namespace vllm_metrics::inline v0 {

// HELP text: a backslash and a line feed would end the line early. Whether a
// quote is escaped, too, is up to the format.
void append_escaped_help(std::string& out, std::string_view text,
                         bool escape_quote);

// A label value between its quotes: the quote as well.
void append_escaped_label_value(std::string& out, std::string_view text);

}  // namespace vllm_metrics::inline v0
