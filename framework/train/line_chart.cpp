#include "framework/train/line_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "framework/text/utf8.h"

namespace gs {
namespace {

constexpr double kWidth = 560, kHeight = 280, kLeft = 72, kRight = 544, kTop = 12, kBottom = 232;
constexpr size_t kMostMarks = 250;  // above, points have no marks of their own

using Points = std::vector<std::pair<double, double>>;

Points usable(const LineChartSeries& series, bool logarithmic) {
  constexpr double kLargest = 1e300;  // so that differences are finite
  Points points;
  for (const auto& [x, y] : series.points) {
    if (std::abs(x) < kLargest && std::abs(y) < kLargest && (!logarithmic || y > 0))
      points.emplace_back(x, y);
  }
  return points;
}

// 1, 2 or 5 times a power of ten, of which about `wanted` fit into the range.
double tick_step(double range, int wanted) {
  const double rough = range / wanted, power = std::pow(10, std::floor(std::log10(rough)));
  for (const double factor : {1, 2, 5}) {
    if (factor * power >= rough) return factor * power;
  }
  return 10 * power;
}

std::string tick_text(double value, double step) {
  if (value != 0 && std::abs(value) >= 1e6 && step >= 1e4) return fmt::format("{:g}M", value / 1e6);
  if (value != 0 && std::abs(value) >= 1e4 && step >= 100) return fmt::format("{:g}k", value / 1e3);
  if (std::abs(value) >= 1e6 || step < 1e-4) return fmt::format("{:.4g}", value);
  return fmt::format("{:.{}f}", value,
                     std::max(0, -static_cast<int>(std::floor(std::log10(step)))));
}

struct Tick {
  double place;  // 0 to 1 along the axis
  std::string text;
};

// Values along an axis, its ends at ticks where it is a y axis.
class Axis {
 public:
  void add(double value) {
    least_ = std::min(least_, value);
    most_ = std::max(most_, value);
  }

  void finish(bool from_zero, bool logarithmic, bool round, int wanted) {
    logarithmic_ = logarithmic;
    if (from_zero) add(0);
    if (logarithmic) {
      least_ = std::floor(std::log10(least_));
      most_ = std::max(std::ceil(std::log10(most_)), least_ + 1);
      return logarithmic_ticks();
    }
    // One value alone stands in the middle.
    if (most_ - least_ <= 1e-9 * std::max(std::abs(most_), std::abs(least_)) || most_ == least_) {
      const double around = least_ == 0 ? 1 : 0.1 * std::abs(least_);
      if (!from_zero) least_ -= around;
      most_ += around;
    }
    const double step = tick_step(most_ - least_, wanted);
    if (round) {
      least_ = step * std::floor(least_ / step);
      most_ = step * std::ceil(most_ / step);
    }
    for (double i = std::ceil(least_ / step - 1e-6) + 0.0; i * step <= most_ + 1e-6 * step; ++i)
      ticks_.push_back({place(i * step), tick_text(i * step, step)});
  }

  double place(double value) const {
    return ((logarithmic_ ? std::log10(value) : value) - least_) / (most_ - least_);
  }
  const std::vector<Tick>& ticks() const { return ticks_; }

 private:
  void logarithmic_ticks() {
    const double decades = most_ - least_, every = std::ceil(decades / 6);
    for (double power = least_; power <= most_; power += every) {
      for (const double factor : {1.0, 2.0, 5.0}) {
        if (factor > 1 && (decades > 2 || power == most_)) break;
        const double value = factor * std::pow(10, power);
        ticks_.push_back({place(value), tick_text(value, value)});
      }
    }
  }

  double least_ = std::numeric_limits<double>::infinity(), most_ = -least_;
  bool logarithmic_ = false;
  std::vector<Tick> ticks_;
};

double across(double place) { return kLeft + place * (kRight - kLeft); }
double down(double place) { return kBottom - place * (kBottom - kTop); }

std::string grid(const LineChart& chart, const Axis& x, const Axis& y) {
  std::string svg;
  for (const Tick& tick : y.ticks()) {
    svg += fmt::format(
        "<line class=\"grid\" x1=\"{}\" x2=\"{}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/>"
        "<text x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n",
        kLeft, kRight, down(tick.place), down(tick.place), kLeft - 8, down(tick.place) + 4,
        tick.text);
  }
  for (const Tick& tick : x.ticks()) {
    svg += fmt::format(
        "<line class=\"axis\" x1=\"{:.1f}\" x2=\"{:.1f}\" y1=\"{}\" y2=\"{}\"/>"
        "<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n",
        across(tick.place), across(tick.place), kBottom, kBottom + 5, across(tick.place),
        kBottom + 20, tick.text);
  }
  const double middle = (kTop + kBottom) / 2;
  return svg +
         fmt::format(
             "<line class=\"axis\" x1=\"{0}\" x2=\"{1}\" y1=\"{2}\" y2=\"{2}\"/>\n"
             "<text x=\"{3}\" y=\"{4}\" text-anchor=\"middle\">{5}</text>\n"
             "<text x=\"14\" y=\"{6}\" text-anchor=\"middle\" transform=\"rotate(-90 14 {6})\">{7}"
             "</text>\n",
             kLeft, kRight, kBottom, (kLeft + kRight) / 2, kHeight - 8, html_text(chart.x_label),
             middle, html_text(chart.y_label));
}

std::string curve(const LineChart& chart, const LineChartSeries& series, const Points& points,
                  size_t number, const Axis& x, const Axis& y) {
  std::string path, marks;
  for (const auto& [step, value] : points) {
    const double left = across(x.place(step)), top = down(y.place(value));
    path += fmt::format("{}{:.1f},{:.1f}", path.empty() ? "" : " ", left, top);
    marks += fmt::format(
        "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"2.2\"><title>{}, {} {:.12g}: {:.5g}"
        "</title></circle>",
        left, top, html_text(series.name), html_text(chart.x_label), step, value);
  }
  return fmt::format("<g class=\"series-{}\"><polyline points=\"{}\"/>{}</g>\n", number, path,
                     points.size() <= kMostMarks ? marks : "");
}

}  // namespace

std::string html_text(const std::string& text) {
  std::string html;
  for (const char c : replace_invalid_utf8(text)) {
    switch (c) {
      case '&':
        html += "&amp;";
        break;
      case '<':
        html += "&lt;";
        break;
      case '>':
        html += "&gt;";
        break;
      case '"':
        html += "&quot;";
        break;
      case '\'':
        html += "&#39;";
        break;
      default:
        if ((static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t') || c == 0x7F)
          html += "\uFFFD";
        else
          html += c;
    }
  }
  return html;
}

std::string line_chart_html(const LineChart& chart) {
  Axis x, y;
  std::vector<Points> curves;
  bool empty = true;
  for (const LineChartSeries& series : chart.series) {
    curves.push_back(usable(series, chart.logarithmic));
    for (const auto& [step, value] : curves.back()) {
      x.add(step);
      y.add(value);
      empty = false;
    }
  }
  std::string html = fmt::format("<figure>\n<figcaption>{}</figcaption>\n", html_text(chart.title));
  if (empty) return html + "<p class=\"faint\">nothing yet</p>\n</figure>\n";
  x.finish(false, false, false, 7);
  y.finish(chart.from_zero, chart.logarithmic, true, 5);
  std::string lines, legend;
  for (size_t i = 0; i < curves.size(); ++i) {
    if (curves[i].empty()) continue;
    const auto& [step, value] = curves[i].back();
    legend += fmt::format(
        "<span><i class=\"series-{}\"></i>{} <span class=\"faint\">{:.5g} at {} "
        "{:.12g}</span></span>\n",
        i % 4 + 1, html_text(chart.series[i].name), value, html_text(chart.x_label), step);
    lines += curve(chart, chart.series[i], curves[i], i % 4 + 1, x, y);
  }
  return html + fmt::format(
                    "<div class=\"legend\">{}</div>\n"
                    "<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">\n{}{}</svg>\n"
                    "</figure>\n",
                    legend, kWidth, kHeight, html_text(chart.title), grid(chart, x, y), lines);
}

}  // namespace gs
