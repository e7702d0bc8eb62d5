#include "src/tools/sandbox/controls.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "src/tools/sim/step_cost.h"
#include "vllm_metrics/stats/device_peaks.h"

namespace vllm_metrics::sandbox {
namespace {

using sim::Parameters;

enum class Effect { kNextStep, kNewEngine, kNewMemory };

struct Control {
  std::string_view name;
  std::string_view label;
  std::string_view help;
  std::string_view unit = "";
  Effect effect = Effect::kNextStep;
};

// A control and how it reads and writes its parameter.
struct Entry {
  Control control;
  std::string_view group;
  Json form;  // kind, and what is allowed
  std::function<Json(const Parameters&)> value;
  std::function<bool(Parameters&, const Json&)> set;  // false: not allowed
};

struct Range {
  double min;
  double max;
  std::string_view scale = "linear";
};

template <class Group, class Value>
struct Member {
  Group Parameters::*group;
  Value Group::*member;

  const Value& of(const Parameters& p) const { return p.*group.*member; }
  Value& of(Parameters& p) const { return p.*group.*member; }
};

Json form_of(std::string_view kind, const Range& range) {
  return {{"kind", kind},
          {"min", range.min},
          {"max", range.max},
          {"scale", range.scale}};
}

template <class Group>
Entry number(const Control& control, Member<Group, double> of, Range range) {
  return {control,
          {},
          form_of("number", range),
          [of](const Parameters& p) { return Json(of.of(p)); },
          [of, range](Parameters& p, const Json& json) {
            if (!json.is_number()) return false;
            const double value = json.get<double>();
            if (!(value >= range.min && value <= range.max)) return false;
            of.of(p) = value;
            return true;
          }};
}

template <class Group>
Entry whole(const Control& control, Member<Group, std::int64_t> of,
            Range range) {
  return {control,
          {},
          form_of("whole", range),
          [of](const Parameters& p) { return Json(of.of(p)); },
          [of, range](Parameters& p, const Json& json) {
            if (!json.is_number()) return false;
            const double value = json.get<double>();
            if (!(value >= range.min && value <= range.max) ||
                value != std::floor(value)) {
              return false;
            }
            of.of(p) = static_cast<std::int64_t>(value);
            return true;
          }};
}

template <class Group>
Entry turn(const Control& control, Member<Group, bool> of) {
  return {control,
          {},
          {{"kind", "turn"}},
          [of](const Parameters& p) { return Json(of.of(p)); },
          [of](Parameters& p, const Json& json) {
            if (!json.is_boolean()) return false;
            of.of(p) = json.get<bool>();
            return true;
          }};
}

template <class Group, class Value>
Entry choice(const Control& control, Member<Group, Value> of,
             std::vector<Value> values) {
  return {control,
          {},
          {{"kind", "choice"}, {"values", values}},
          [of](const Parameters& p) { return Json(of.of(p)); },
          [of, values](Parameters& p, const Json& json) {
            const auto found = std::find_if(
                values.begin(), values.end(),
                [&json](const Value& value) { return json == Json(value); });
            if (found == values.end()) return false;
            of.of(p) = *found;
            return true;
          }};
}

template <class Value>
Member<sim::WorkloadParameters, Value> load(
    Value sim::WorkloadParameters::*member) {
  return {&Parameters::workload, member};
}
template <class Value>
Member<sim::SchedulerParameters, Value> scheduler(
    Value sim::SchedulerParameters::*member) {
  return {&Parameters::scheduler, member};
}
template <class Value>
Member<sim::EngineParameters, Value> engine(
    Value sim::EngineParameters::*member) {
  return {&Parameters::engine, member};
}

std::vector<Entry> load_entries() {
  using W = sim::WorkloadParameters;
  return {
      number({"rate", "Arrival rate",
              "requests arrive at random, whatever becomes of them", "req/s"},
             load(&W::rate), {0.1, 100, "log"}),
      whole({"concurrency", "Clients",
             "instead of a rate: so many clients, each of whom waits for its "
             "answer; 0: by rate"},
            load(&W::concurrency), {0, 400}),
      number({"think-time", "Think time",
              "of a client, between answer and "
              "next prompt",
              "s"},
             load(&W::think_time), {0, 60}),
      whole({"turns", "Turns", "of a client's conversation"}, load(&W::turns),
            {1, 20}),
      number({"prompt-tokens", "Prompt length", "mean", "tokens"},
             load(&W::prompt_tokens), {16, 32768, "log"}),
      number({"prompt-spread", "Prompt spread",
              "standard deviation of the length's logarithm"},
             load(&W::prompt_spread), {0, 1.5}),
      number({"output-tokens", "Output length", "mean", "tokens"},
             load(&W::output_tokens), {1, 4096, "log"}),
      number({"output-spread", "Output spread",
              "standard deviation of the length's logarithm"},
             load(&W::output_spread), {0, 1.5}),
      number({"long-prompt-share", "Long prompts", "share of all prompts"},
             load(&W::long_prompt_share), {0, 0.5}),
      number({"long-prompt-tokens", "Their length", "mean", "tokens"},
             load(&W::long_prompt_tokens), {1024, 65536, "log"}),
      number({"prefix-share", "Shared prefix",
              "the part of each prompt that others have too"},
             load(&W::prefix_share), {0, 0.95}),
      number({"patience", "Patience", "until a client gives up; 0: never", "s"},
             load(&W::patience), {0, 120}),
      choice({"routing", "Routing", "to which engine a request goes"},
             load(&W::routing),
             {std::string(sim::kLeastLoaded), std::string(sim::kRoundRobin),
              std::string(sim::kSticky)}),
  };
}

std::vector<Entry> scheduler_entries() {
  using S = sim::SchedulerParameters;
  return {
      whole({"max-num-batched-tokens", "max-num-batched-tokens",
             "token budget of a step", "tokens"},
            scheduler(&S::max_num_batched_tokens), {64, 32768, "log"}),
      whole({"max-num-seqs", "max-num-seqs", "requests that run at once"},
            scheduler(&S::max_num_seqs), {1, 1024, "log"}),
      whole({"max-num-active-seqs", "max-num-active-seqs",
             "the same, if lower; 0: no cap"},
            scheduler(&S::max_num_active_seqs), {0, 256}),
      whole({"long-prefill-token-threshold", "long-prefill-token-threshold",
             "most prompt tokens of a request in a step; 0: the budget",
             "tokens"},
            scheduler(&S::long_prefill_token_threshold), {0, 8192}),
      number({"acceptance-rate", "acceptance rate",
              "of a drafted token, all before it accepted"},
             scheduler(&S::acceptance_rate), {0, 1}),
  };
}

std::vector<Entry> engine_entries() {
  using E = sim::EngineParameters;
  std::vector<std::string> devices;
  for (const DevicePeaks& known : known_device_peaks()) {
    devices.emplace_back(known.name);
  }
  return {
      number({"gpu-memory-utilization", "gpu-memory-utilization",
              "the part of the device's memory that is used", "",
              Effect::kNewMemory},
             engine(&E::gpu_memory_utilization), {0.2, 0.98}),
      choice({"kv-cache-dtype", "kv-cache-dtype", "numbers of the KV cache", "",
              Effect::kNewMemory},
             engine(&E::kv_cache_dtype),
             std::vector<std::string>{"auto", "fp8", "nvfp4"}),
      choice({"block-size", "block-size", "tokens in a KV block", "tokens",
              Effect::kNewMemory},
             engine(&E::block_size),
             std::vector<std::int64_t>{8, 16, 32, 64, 128, 256}),
      turn({"enable-prefix-caching", "enable-prefix-caching",
            "find text again that was computed before", "", Effect::kNewEngine},
           engine(&E::enable_prefix_caching)),
      whole({"speculative-tokens", "speculative tokens",
             "drafted for each request in a step; 0: none", "",
             Effect::kNewEngine},
            engine(&E::speculative_tokens), {0, 8}),
      whole({"max-model-len", "max-model-len",
             "prompt and output together; longer requests are refused",
             "tokens", Effect::kNewEngine},
            engine(&E::max_model_len), {1024, 131072, "log"}),
      turn({"enforce-eager", "enforce-eager", "no CUDA graphs", "",
            Effect::kNewEngine},
           engine(&E::enforce_eager)),
      whole({"engines", "data-parallel-size",
             "engines, each with its own KV "
             "cache",
             "", Effect::kNewEngine},
            engine(&E::engines), {1, 8}),
      choice({"tensor-parallel-size", "tensor-parallel-size",
              "GPUs that share each layer", "GPUs", Effect::kNewMemory},
             engine(&E::tensor_parallel_size),
             std::vector<std::int64_t>{1, 2, 4, 8}),
      turn({"enable-expert-parallel", "enable-expert-parallel",
            "each GPU has whole experts; models with experts only", "",
            Effect::kNewMemory},
           engine(&E::enable_expert_parallel)),
      choice({"model", "Model", "its shape decides what a step costs", "",
              Effect::kNewMemory},
             engine(&E::model),
             std::vector<std::string>{"dense-8b", "dense-70b", "moe-30b"}),
      choice({"device", "Device", "its data sheet's peaks and memory", "",
              Effect::kNewMemory},
             engine(&E::device), devices),
  };
}

std::vector<Entry> make_entries() {
  std::vector<Entry> all;
  const auto add = [&all](std::string_view group, std::vector<Entry> entries) {
    for (Entry& entry : entries) {
      entry.group = group;
      all.push_back(std::move(entry));
    }
  };
  add("Scheduler", scheduler_entries());
  add("Engine", engine_entries());
  add("Load", load_entries());
  return all;
}

const std::vector<Entry>& entries() {
  static const std::vector<Entry> all = make_entries();
  return all;
}

std::string allowed_of(const Json& form) {
  const std::string kind = form["kind"];
  if (kind == "turn") return "true or false";
  if (kind == "choice") {
    std::string out;
    for (const Json& value : form["values"]) {
      out += fmt::format(
          "{}{}", out.empty() ? "" : ", ",
          value.is_string() ? value.get<std::string>() : value.dump());
    }
    return out;
  }
  return fmt::format("a {} from {} to {}",
                     kind == "whole" ? "whole number" : "number",
                     form["min"].get<double>(), form["max"].get<double>());
}

std::string text_of(const Json& value) {
  constexpr std::size_t kShown = 60;
  std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
  if (text.size() > kShown) text = text.substr(0, kShown) + "...";
  return text;
}

}  // namespace

Json controls_json() {
  Json out = Json::array();
  for (const Entry& entry : entries()) {
    Json one = {{"name", entry.control.name},
                {"label", entry.control.label},
                {"group", entry.group},
                {"help", entry.control.help},
                {"unit", entry.control.unit},
                {"restarts", entry.control.effect != Effect::kNextStep}};
    one.update(entry.form);
    out.push_back(std::move(one));
  }
  return out;
}

Json values_json(const Parameters& parameters) {
  Json out = Json::object();
  for (const Entry& entry : entries()) {
    out[std::string(entry.control.name)] = entry.value(parameters);
  }
  return out;
}

absl::Status set_values(const Json& values, Parameters& parameters) {
  for (const auto& [name, value] : values.items()) {
    const auto found = std::find_if(
        entries().begin(), entries().end(),
        [&name = name](const Entry& e) { return e.control.name == name; });
    if (found == entries().end()) {
      return absl::InvalidArgumentError(fmt::format(
          "parameters = {}; allowed: the names that /api/controls lists",
          text_of(Json(name))));
    }
    if (!found->set(parameters, value)) {
      return absl::InvalidArgumentError(fmt::format("{} = {}; allowed: {}",
                                                    name, text_of(value),
                                                    allowed_of(found->form)));
    }
    if (found->control.effect == Effect::kNewMemory) {
      parameters.engine.num_gpu_blocks.reset();
    }
  }
  if (const std::string model = parameters.engine.model;
      values.contains("model")) {
    return sim::choose_model(model, parameters.engine);
  }
  return absl::OkStatus();
}

Parameters with_blocks_from_memory(Parameters parameters) {
  const auto wanted = parameters.engine.num_gpu_blocks;
  if (!wanted.has_value() || *wanted <= 0) return parameters;
  Parameters out = parameters;
  sim::EngineParameters& engine = out.engine;
  engine.num_gpu_blocks.reset();
  double low = 0.01;
  double high = 1.0;
  for (int i = 0; i < 60; ++i) {
    engine.gpu_memory_utilization = (low + high) / 2.0;
    const auto cost = sim::StepCostModel::create(engine);
    if (cost.ok() && cost->num_gpu_blocks() == *wanted) return out;
    const bool too_few = !cost.ok() || cost->num_gpu_blocks() < *wanted;
    (too_few ? low : high) = engine.gpu_memory_utilization;
  }
  return parameters;
}

}  // namespace vllm_metrics::sandbox
