#pragma once

#include <string>
#include <utility>
#include <vector>

namespace gs {

// A curve; points in ascending x. Points that are not finite are left out.
struct LineChartSeries {
  std::string name;
  std::vector<std::pair<double, double>> points;
};

struct LineChart {
  std::string title = {}, x_label = "step", y_label = {};
  std::vector<LineChartSeries> series = {};
  bool from_zero = false;    // the y axis begins at 0
  bool logarithmic = false;  // y; values of 0 and less are left out
};

// The chart as an HTML figure: a legend, an inline SVG with axes, ticks and grid, and the last
// value of each curve. Colours are the CSS variables --text, --faint, --line and --series-1 to
// --series-4. A chart without a point says so.
std::string line_chart_html(const LineChart& chart);

// Text for HTML: & < > " ' become entities, what is not UTF-8 and control characters U+FFFD.
std::string html_text(const std::string& text);

}  // namespace gs
