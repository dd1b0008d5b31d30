#pragma once

#include <cstdint>
#include <string>

#include "framework/train/options.h"

namespace gs {

struct ReportConfig {
  std::string folder = {};       // of the run
  std::string title = {};        // "A translation model"
  Options::Values options = {};  // to be listed
  int64_t samples = 5;           // translations shown of each test
};

// A run as one page of HTML that needs nothing else: curves of losses, scores and speed from
// metrics.jsonl, scores of the tests from summary.json and sample translations from
// NAME.{source,translation,reference}, where there are such files; the options. Lines of
// metrics.jsonl that are no JSON object (a last one cut short) are passed over; a metrics.jsonl
// that cannot be read and a summary.json that is none are Errors.
std::string report_html(const ReportConfig& config);

// Writes it to FOLDER/report.html.
void write_report(const ReportConfig& config);

}  // namespace gs
