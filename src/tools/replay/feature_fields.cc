#include "src/tools/replay/feature_fields.h"

#include <algorithm>
#include <cstdint>
#include <string>

namespace vllm_metrics::replay {
namespace {

// One request's draft: [draft tokens, accepted tokens].
struct Draft {
  std::int64_t tokens = 0;
  std::int64_t accepted = 0;
};

void read_value(const JsonValue& value, Draft& out) {
  using replay::read_value;
  if (!value.is_array_of(2, "a pair [draft tokens, accepted tokens]")) return;
  read_value(value.element(0), out.tokens);
  read_value(value.element(1), out.accepted);
}

// Either the sums of the step or the drafts they come from.
struct SpecDecodingFields {
  SpecDecodingStats stats;
  std::vector<Draft> drafts;
};

template <auto kMember>
void read_spec(const JsonValue& value, SpecDecodingFields& out) {
  read_value(value, out.stats.*kMember);
}

using Spec = SpecDecodingStats;
constexpr Field<SpecDecodingFields> kSpecDecodingFields[] = {
    {"num_spec_tokens", read_spec<&Spec::num_spec_tokens>},
    {"num_drafts", read_spec<&Spec::num_drafts>},
    {"num_draft_tokens", read_spec<&Spec::num_draft_tokens>},
    {"num_accepted_tokens", read_spec<&Spec::num_accepted_tokens>},
    {"num_accepted_tokens_per_pos",
     read_spec<&Spec::num_accepted_tokens_per_pos>},
    field<SpecDecodingFields, &SpecDecodingFields::drafts>("drafts"),
};

constexpr Field<NixlStats> kNixlFields[] = {
    field<NixlStats, &NixlStats::transfer_duration>("transfer_duration"),
    field<NixlStats, &NixlStats::post_duration>("post_duration"),
    field<NixlStats, &NixlStats::bytes_transferred>("bytes_transferred"),
    field<NixlStats, &NixlStats::num_descriptors>("num_descriptors"),
    field<NixlStats, &NixlStats::num_failed_transfers>("num_failed_transfers"),
    field<NixlStats, &NixlStats::num_failed_notifications>(
        "num_failed_notifications"),
    field<NixlStats, &NixlStats::num_kv_expired_reqs>("num_kv_expired_reqs"),
};

using Eviction = KvCacheEvictionEvent;
constexpr Field<Eviction> kReuseGapsField = {
    "reuse_gaps_seconds", [](const JsonValue& value, Eviction& out) {
      std::vector<double> gaps;
      read_value(value, gaps);
      if (gaps.size() > out.reuse_gaps.size()) {
        return value.refuse("a list of 3 at most");
      }
      std::ranges::copy(gaps, out.reuse_gaps.begin());
      out.num_reuse_gaps = gaps.size();
    }};

constexpr Field<Eviction> kEvictionFields[] = {
    field<Eviction, &Eviction::lifetime_seconds>("lifetime_seconds"),
    field<Eviction, &Eviction::idle_seconds>("idle_seconds"),
    kReuseGapsField,
};

using Details = IterationDetails;
constexpr Field<Details> kDetailsFields[] = {
    field<Details, &Details::iteration_index>("iteration_index"),
    field<Details, &Details::num_ctx_requests>("num_ctx_requests"),
    field<Details, &Details::num_ctx_tokens>("num_ctx_tokens"),
    field<Details, &Details::num_generation_requests>(
        "num_generation_requests"),
    field<Details, &Details::num_generation_tokens>("num_generation_tokens"),
    field<Details, &Details::elapsed_ms>("elapsed_ms"),
    field<Details, &Details::num_encoder_inputs>("num_encoder_inputs"),
    field<Details, &Details::num_encoder_output_tokens>(
        "num_encoder_output_tokens"),
    field<Details, &Details::is_dummy>("is_dummy"),
};

template <bool kIsNew>
void read_scheduled(const JsonValue& value, TraceScheduler& out) {
  if (!value.json().is_array()) return value.refuse("a list");
  if (!out.scheduled.has_value()) out.scheduled.emplace();
  for (std::size_t i = 0; i < value.json().size(); ++i) {
    const JsonValue pair = value.element(i);
    if (!pair.is_array_of(2, "a pair [tokens, already computed]")) {
      return;
    }
    ScheduledRequest& request = out.scheduled->emplace_back();
    request.is_new = kIsNew;
    read_value(pair.element(0), request.num_scheduled_tokens);
    read_value(pair.element(1), request.num_computed_tokens);
  }
}

template <auto kMember>
void read_perf(const JsonValue& value, TraceScheduler& out) {
  read_value(value, (*out.stats.perf_stats).*kMember);
}

constexpr Field<TraceScheduler> kPerfFields[] = {
    {"num_flops_per_gpu", read_perf<&PerfStats::num_flops_per_gpu>},
    {"num_read_bytes_per_gpu", read_perf<&PerfStats::num_read_bytes_per_gpu>},
    {"num_write_bytes_per_gpu", read_perf<&PerfStats::num_write_bytes_per_gpu>},
    {"new", read_scheduled<true>},
    {"cached", read_scheduled<false>},
};

template <auto kMember>
void read_cudagraph(const JsonValue& value, TraceScheduler& out) {
  read_value(value, (*out.stats.cudagraph_stats).*kMember);
}

using Graph = CudaGraphStat;
constexpr Field<TraceScheduler> kCudaGraphFields[] = {
    {"num_unpadded_tokens", read_cudagraph<&Graph::num_unpadded_tokens>},
    {"num_padded_tokens", read_cudagraph<&Graph::num_padded_tokens>},
    {"num_paddings", read_cudagraph<&Graph::num_paddings>},
    field<TraceScheduler, &TraceScheduler::runtime_mode>("runtime_mode"),
};

}  // namespace

void read_value(const JsonValue& value, SpecDecodingStats& out) {
  SpecDecodingFields fields;
  read_object(value, fields, kSpecDecodingFields);
  out = std::move(fields.stats);
  for (const Draft& draft : fields.drafts) {
    out.observe_draft(draft.tokens, draft.accepted);
  }
}

void read_value(const JsonValue& value, NixlStats& out) {
  read_object(value, out, kNixlFields);
}

void read_value(const JsonValue& value, KvCacheEvictionEvent& out) {
  read_object(value, out, kEvictionFields);
}

void read_value(const JsonValue& value, IterationDetails& out) {
  read_object(value, out, kDetailsFields);
}

void read_value(const JsonValue& value, std::vector<AdapterCount>& out) {
  if (!value.json().is_object()) return value.refuse("an object of counts");
  for (const auto& item : value.json().items()) {
    AdapterCount& adapter = out.emplace_back();
    adapter.name = item.key();
    read_value(value.member(item.key()), adapter.num_requests);
  }
}

void read_perf_stats(const JsonValue& value, TraceScheduler& out) {
  if (value.json().is_null()) return;
  out.stats.perf_stats.emplace();
  read_object(value, out, kPerfFields);
}

void read_cudagraph_stats(const JsonValue& value, TraceScheduler& out) {
  if (value.json().is_null()) return;
  out.stats.cudagraph_stats.emplace();
  read_object(value, out, kCudaGraphFields);
}

}  // namespace vllm_metrics::replay
