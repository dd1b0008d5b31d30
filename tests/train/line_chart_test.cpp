#include "framework/train/line_chart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace gs {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The plot reaches from 72 to 544 across and from 232 (bottom) to 12 (top).
TEST(LineChart, PlacesPointsBetweenTheTicks) {
  const std::string html = line_chart_html(
      {.title = "Loss", .y_label = "nats", .series = {{"a", {{0, 1}, {5, 0.5}, {10, 0}}}}});
  EXPECT_THAT(html, HasSubstr("<polyline points=\"72.0,12.0 308.0,122.0 544.0,232.0\"/>"));
  EXPECT_THAT(html, HasSubstr("<figcaption>Loss</figcaption>"));
  EXPECT_THAT(html, HasSubstr("a <span class=\"faint\">0 at step 10</span>"));
  for (const char* tick : {">0.0<", ">0.2<", ">0.4<", ">0.6<", ">0.8<", ">1.0<", ">0<", ">2<",
                           ">4<", ">6<", ">8<", ">10<", ">step<", ">nats<"})
    EXPECT_THAT(html, HasSubstr(tick));
  EXPECT_THAT(html, Not(HasSubstr("-0")));
}

TEST(LineChart, BeginsAtZeroWhereWanted) {
  const LineChart chart{.series = {{"a", {{0, 30}, {1, 40}}}}, .from_zero = true};
  EXPECT_THAT(line_chart_html(chart), HasSubstr("points=\"72.0,67.0 544.0,12.0\""));  // 0 to 40
}

TEST(LineChart, TakesLogarithms) {
  const LineChart chart{.series = {{"a", {{0, 1000}, {1, 10}, {2, 1}, {2, 0}, {2, -3}}}},
                        .logarithmic = true};
  const std::string html = line_chart_html(chart);
  EXPECT_THAT(html, HasSubstr("points=\"72.0,12.0 308.0,158.7 544.0,232.0\""));
  for (const char* tick : {">1<", ">10<", ">100<", ">1000<"}) EXPECT_THAT(html, HasSubstr(tick));
}

TEST(LineChart, WritesLargeTicksShort) {
  const LineChart thousands{.series = {{"a", {{0, 0}, {40000, 20000}}}}};
  EXPECT_THAT(line_chart_html(thousands), HasSubstr(">20k<"));
  EXPECT_THAT(line_chart_html(thousands), HasSubstr(">5000<"));
  const LineChart millions{.series = {{"a", {{0, 0}, {1, 2500000}}}}};
  EXPECT_THAT(line_chart_html(millions), HasSubstr(">2.5M<"));
}

TEST(LineChart, LeavesOutWhatIsNotFinite) {
  const LineChart chart{
      .series = {{"a", {{0, 0}, {1, kNaN}, {kNaN, 1}, {2, kInfinity}, {3, -kInfinity}, {4, 1}}},
                 {"b", {{9, kNaN}}}}};
  const std::string html = line_chart_html(chart);
  EXPECT_THAT(html, HasSubstr("<polyline points=\"72.0,232.0 544.0,12.0\"/>"));
  EXPECT_THAT(html, Not(HasSubstr("nan")));
  EXPECT_THAT(html, Not(HasSubstr("inf")));
  EXPECT_THAT(html, Not(HasSubstr("series-2")));
}

TEST(LineChart, OfOnePointOrNoneIsStillAChart) {
  EXPECT_THAT(line_chart_html({.title = "T", .series = {{"a", {}}}}),
              HasSubstr("<figcaption>T</figcaption>\n<p class=\"faint\">nothing yet</p>"));
  EXPECT_THAT(line_chart_html({.title = "T"}), HasSubstr("nothing yet"));
  // 54 to 66 across, 1 to 3 up.
  EXPECT_THAT(line_chart_html({.series = {{"a", {{60, 10}}}}}),
              HasSubstr("points=\"308.0,122.0\""));
  EXPECT_THAT(line_chart_html({.series = {{"a", {{0, 0}}}}}), HasSubstr("points=\"308.0,122.0\""));
  EXPECT_THAT(line_chart_html({.series = {{"a", {{7, 0}}}}, .from_zero = true}),
              HasSubstr("points=\"308.0,232.0\""));
  EXPECT_THAT(line_chart_html({.series = {{"a", {{7, 10}}}}, .logarithmic = true}),
              HasSubstr("points=\"308.0,232.0\""));
}

TEST(LineChart, StandsWideRanges) {
  const LineChart chart{.series = {{"a", {{-1e299, 1e-299}, {1e299, 1e299}}}}, .logarithmic = true};
  const std::string html = line_chart_html(chart);
  EXPECT_THAT(html, HasSubstr("544.0,12.0"));
  EXPECT_LT(html.size(), 5000u);
}

TEST(LineChart, MarksPointsWhereTheyAreFew) {
  LineChart chart{.series = {{"a", {}}}};
  for (int i = 0; i < 251; ++i) {
    chart.series[0].points.emplace_back(i, i % 2);
    const bool marked = line_chart_html(chart).find("<circle") != std::string::npos;
    EXPECT_EQ(marked, i < 250) << i;
  }
}

TEST(HtmlText, EscapesWhatHtmlWouldRead) {
  EXPECT_EQ(html_text("<b a=\"1\" c='2'>&amp;"),
            "&lt;b a=&quot;1&quot; c=&#39;2&#39;&gt;&amp;amp;");
  EXPECT_EQ(html_text("sch\u00F6n\t\n"), "sch\u00F6n\t\n");
  EXPECT_EQ(html_text(std::string("a\0\x1F\x7F\xFF", 5)), "a\uFFFD\uFFFD\uFFFD\uFFFD");
}

}  // namespace
}  // namespace gs
