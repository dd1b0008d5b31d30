#include "framework/train/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "framework/core/error.h"
#include "framework/io/atomic_file.h"
#include "framework/train/line_chart.h"
#include "framework/train/progress.h"

namespace gs {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kStyle = R"(
:root { color-scheme: light dark; --text: #1c1e21; --faint: #6a6f76; --line: #d9dce0;
  --page: #ffffff; --series-1: #1f66c1; --series-2: #c2410c; --series-3: #15803d;
  --series-4: #7e22ce; }
@media (prefers-color-scheme: dark) { :root { --text: #e6e8eb; --faint: #9aa1a9; --line: #363b42;
  --page: #15181c; --series-1: #6cb0ff; --series-2: #ff9a5c; --series-3: #5fd08a;
  --series-4: #cf9bff; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.5rem; max-width: 1240px; background: var(--page);
  color: var(--text); font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.5rem; margin: 0 0 .25rem; } h2 { font-size: 1.15rem; margin: 2rem 0 .5rem; }
.faint { color: var(--faint); }
.charts { display: grid; gap: 1.5rem;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 460px), 1fr)); }
figure { margin: 0; min-width: 0; } figcaption { font-weight: 600; }
.legend { display: flex; flex-wrap: wrap; gap: 0 1.2rem; font-size: .87rem; }
.legend i { display: inline-block; width: .8rem; height: .8rem; border-radius: 50%;
  margin-right: .35rem; background: var(--curve); vertical-align: -1px; }
svg { display: block; width: 100%; height: auto; font-size: 12px; }
svg text { fill: var(--faint); } .grid { stroke: var(--line); } .axis { stroke: var(--faint); }
.series-1 { --curve: var(--series-1); } .series-2 { --curve: var(--series-2); }
.series-3 { --curve: var(--series-3); } .series-4 { --curve: var(--series-4); }
polyline { fill: none; stroke: var(--curve); stroke-width: 1.8; stroke-linejoin: round; }
circle { fill: var(--curve); }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { text-align: left; vertical-align: top; padding: .25rem 1rem .25rem 0;
  border-bottom: 1px solid var(--line); overflow-wrap: anywhere; }
th { font-weight: 600; white-space: nowrap; } td.number, th.number { text-align: right; }
.list { columns: 22rem; column-gap: 2rem; margin: 0; }
.list div { display: flex; justify-content: space-between; gap: 1rem; break-inside: avoid;
  border-bottom: 1px solid var(--line); overflow-wrap: anywhere; }
.list dt { color: var(--faint); white-space: nowrap; } .list dd { margin: 0; text-align: right; white-space: pre-line; }
.samples table { width: 100%; margin-bottom: 1rem; } .samples th { width: 7rem; }
)";

// A field that is no number is NaN: null where it was not finite.
double number_of(const Json& object, const std::string& name) {
  const auto found = object.find(name);
  if (found == object.end() || !found->is_number()) return std::numeric_limits<double>::quiet_NaN();
  return found->get<double>();
}

std::vector<Json> read_metrics(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  check(stream.is_open(), "report: {} cannot be read; name the folder of a run", path);
  std::vector<Json> events;
  for (std::string line; std::getline(stream, line);) {
    Json event = Json::parse(line, nullptr, false);
    if (event.is_object()) events.push_back(std::move(event));
  }
  return events;
}

Json read_summary(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  if (!stream.is_open()) return Json::object();
  Json summary = Json::parse(stream, nullptr, false);
  check(summary.is_object(), "report: {} is no JSON object; remove it", path);
  return summary;
}

LineChartSeries series_of(const std::vector<Json>& events, const std::string& event,
                          const std::string& field, const std::string& name, double factor = 1) {
  LineChartSeries series{name, {}};
  for (const Json& line : events) {
    if (line.value("event", Json()) != event) continue;
    series.points.emplace_back(number_of(line, "step"), factor * number_of(line, field));
  }
  return series;
}

std::string charts_html(const std::vector<Json>& events) {
  const auto training = [&](const char* field) {
    return series_of(events, "training", field, "training");
  };
  const auto validation = [&](const char* field, const char* name, double factor = 1) {
    return series_of(events, "validation", field, name, factor);
  };
  const auto average = [&](const char* field, const char* name) {
    return series_of(events, "average", field, name);
  };
  std::string html = "<div class=\"charts\">\n";
  for (const LineChart& chart : std::initializer_list<LineChart>{
           {.title = "Loss",
            .y_label = "nats a token",
            .series = {training("loss"), validation("loss", "validation"),
                       average("loss", "average of checkpoints")}},
           {.title = "Scores of the validation's translations",
           .y_label = "score (0 to 100)",
           .series = {validation("bleu", "BLEU"), validation("chrf", "chrF"),
                      average("bleu", "BLEU of the average of checkpoints")},
           .from_zero = true},
           {.title = "Perplexity of the validation",
           .y_label = "perplexity (logarithmic)",
           .series = {validation("perplexity", "perplexity")},
           .logarithmic = true},
           {.title = "Tokens predicted right, sentences translated exactly",
           .y_label = "%",
           .series = {validation("token_accuracy", "token accuracy", 100),
                      validation("exact_match", "exact match", 100)},
           .from_zero = true},
           {.title = "Speed",
           .y_label = "tokens a second",
           .series = {training("tokens_per_second")},
           .from_zero = true}})
    html += line_chart_html(chart);
  return html +
         "</div>\n<p class=\"faint\">The training loss is measured with dropout and label "
         "smoothing "
         "where they are used, the validation's without.</p>\n";
}

std::string text_of(const std::string& name, const Json& value) {
  if (name.ends_with("seconds") && value.is_number()) return duration_text(value.get<double>());
  if ((name == "exact_match" || name.ends_with("accuracy")) && value.is_number())
    return fmt::format("{:.2f} %", 100 * value.get<double>());
  if (value.is_number_float()) return fmt::format("{:.2f}", value.get<double>());
  if (value.is_string()) return value.get<std::string>();
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string heading_of(std::string name) {
  std::replace(name.begin(), name.end(), '_', ' ');
  if (name.ends_with("seconds")) name.replace(name.size() - 7, 7, "time");
  if (name == "bleu") return "BLEU";
  if (name == "chrf") return "chrF";
  return name;
}

// What the summary says about the tests: members that are objects hold a value for each test.
std::string tests_html(const Json& summary) {
  std::vector<std::string> measures, tests;
  for (const auto& [name, values] : summary.items()) {
    if (!values.is_object() || values.empty()) continue;
    measures.push_back(name);
    for (const auto& [test, value] : values.items()) {
      if (std::find(tests.begin(), tests.end(), test) == tests.end()) tests.push_back(test);
    }
  }
  if (tests.empty()) return "<p class=\"faint\">No test has been scored yet.</p>\n";
  std::string html = "<table>\n<tr><th>test</th>";
  for (const std::string& measure : measures)
    html += "<th class=\"number\">" + html_text(heading_of(measure)) + "</th>";
  html += "</tr>\n";
  for (const std::string& test : tests) {
    html += "<tr><td>" + html_text(test) + "</td>";
    for (const std::string& measure : measures) {
      const Json value = summary[measure].value(test, Json());
      html += "<td class=\"number\">" +
              (value.is_null() ? "" : html_text(text_of(measure, value))) + "</td>";
    }
    html += "</tr>\n";
  }
  return html + "</table>\n";
}

std::vector<std::string> lines_of(const std::string& path) {
  std::vector<std::string> lines;
  std::ifstream stream(path, std::ios::binary);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// Some translations of every test that has been translated, from all over the file.
std::string samples_html(const ReportConfig& config) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(config.folder)) {
    if (entry.path().extension() == ".translation") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  std::string html;
  for (const std::string& name : names) {
    const std::string base = config.folder + "/" + name;
    const std::vector<std::string> sources = lines_of(base + ".source"),
                                   translations = lines_of(base + ".translation"),
                                   references = lines_of(base + ".reference");
    const size_t lines = translations.size();
    if (lines == 0 || sources.size() != lines || references.size() != lines) continue;
    html += "<h3>" + html_text(name) + "</h3>\n";
    const size_t count = std::min(lines, static_cast<size_t>(std::max<int64_t>(config.samples, 0)));
    for (size_t i = 0; i < count; ++i) {
      const size_t line = i * lines / count;
      html += "<table>\n";
      for (const auto& [label, text] :
           {std::pair("source", &sources[line]), std::pair("translation", &translations[line]),
            std::pair("reference", &references[line])})
        html +=
            fmt::format("<tr><th>{}</th><td dir=\"auto\">{}</td></tr>\n", label, html_text(*text));
      html += "</table>\n";
    }
  }
  return html.empty() ? html
                      : "<h2>Translations</h2>\n<div class=\"samples\">\n" + html + "</div>\n";
}

std::string list_html(const std::string& heading, const Options::Values& values) {
  if (values.empty()) return "";
  std::string html = "<h2>" + heading + "</h2>\n<dl class=\"list\">\n";
  for (const auto& [name, value] : values) {
    html += fmt::format("<div><dt>{}</dt><dd>{}</dd></div>\n", html_text(name),
                        value.empty() ? "&ndash;" : html_text(value));
  }
  return html + "</dl>\n";
}

// What the summary says about the run, and before there is one the last event of the training.
Options::Values facts_of(const Json& summary, const std::vector<Json>& events) {
  Options::Values facts;
  for (const auto& [name, value] : summary.items()) {
    if (!value.is_object()) facts.emplace_back(heading_of(name), text_of(name, value));
  }
  for (auto event = events.rbegin(); event != events.rend() && facts.empty(); ++event) {
    for (const char* name : {"step", "epoch", "seconds"}) {
      if (event->value("event", Json()) == "training" && event->contains(name))
        facts.emplace_back(heading_of(name), text_of(name, event->at(name)));
    }
  }
  return facts;
}

}  // namespace

std::string report_html(const ReportConfig& config) {
  const std::vector<Json> events = read_metrics(config.folder + "/metrics.jsonl");
  const Json summary = read_summary(config.folder + "/summary.json");
  return fmt::format(
             "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
             "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
             "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
             "style-src 'unsafe-inline'\">\n<title>{0}</title>\n<style>{1}</style>\n</head>\n"
             "<body>\n<h1>{0}</h1>\n",
             html_text(config.title), kStyle) +
         list_html("Run", facts_of(summary, events)) + "<h2>Training</h2>\n" + charts_html(events) +
         "<h2>Tests</h2>\n" + tests_html(summary) + samples_html(config) +
         list_html("Options", config.options) + "</body>\n</html>\n";
}

void write_report(const ReportConfig& config) {
  write_file_atomically(config.folder + "/report.html", report_html(config));
}

}  // namespace gs
