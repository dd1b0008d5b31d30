#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace gs {

// What an option accepts, beyond its type: a range of numbers (for lists: of each), or one of a
// few words.
struct Allowed {
  double least = -std::numeric_limits<double>::infinity();
  double most = std::numeric_limits<double>::infinity();
  bool least_excluded = false;
  bool most_excluded = false;
  std::vector<std::string> words = {};
};
Allowed at_least(double least);
Allowed above(double least);
Allowed between(double least, double most);  // both ends included
Allowed at_least_and_below(double least, double most);
Allowed one_of(std::vector<std::string> words);

// The command line of a program: typed options `--name value` or `--name=value`, flags `--name` or
// `--name=false`, lists `--name a,b,c`. The last of several occurrences counts, but lists of words
// add up: `--name a --name b`. Every bad form throws an Error whose text starts with the option,
// and changes nothing. Every program has --help, --version, --profile and --profile-trace as well;
// the profile is shown by run_program.
class Options {
 public:
  using Value = std::variant<bool, int, int64_t, uint64_t, float, double, std::string,
                             std::vector<int64_t>, std::vector<double>, std::vector<std::string>>;
  using Values = std::vector<std::pair<std::string, std::string>>;

  Options(std::string program, std::string description);

  // Options added from here on stand under this heading in the help.
  void group(std::string heading);

  // Adds an option that is read with value<T>(name), T being the type of `initial` (int for 20,
  // double for 1e-3, std::string for "word").
  void add(std::string name, Value initial, std::string description, Allowed allowed = {});
  // Adds an option for a variable, whose present value is the default. It must outlive this.
  template <typename T>
  void bind(std::string name, T& variable, std::string description, Allowed allowed = {}) {
    add(std::move(name), Value(variable), std::move(description), std::move(allowed));
    options_.back().variable = &variable;
  }
  // Takes the words that belong to no option, such as names of files; without, they are refused.
  // `placeholder` names them in the help. `words` must outlive this.
  void bind_words(std::string placeholder, std::vector<std::string>& words);
  // Marks options that belong to one call only (where to write, what to resume): values() leaves
  // them out.
  void leave_out(const std::vector<std::string>& names);

  // False where --help or --version was asked for, and printed: the program then ends with 0.
  [[nodiscard]] bool parse(int argc, const char* const* argv);

  template <typename T>
  const T& value(const std::string& name) const {
    return std::get<T>(find(name).value);
  }
  // Whether the command line holds the option, even with its default value.
  bool is_set(const std::string& name) const { return find(name).set; }

  // All options as text, in order, to be stored in a checkpoint.
  Values values() const;
  // Takes stored values for the options that the command line does not hold. Gives one sentence
  // for each option where the command line and the stored value differ. A stored name that is
  // unknown, or a stored value that is not allowed, throws an Error and changes nothing; so does a
  // difference in one of the `fixed` options, which cannot change any more.
  std::vector<std::string> restore(const Values& stored,
                                   const std::vector<std::string>& fixed = {});

  std::string help() const;

 private:
  using Variable =
      std::variant<std::monostate, bool*, int*, int64_t*, uint64_t*, float*, double*, std::string*,
                   std::vector<int64_t>*, std::vector<double>*, std::vector<std::string>*>;
  struct Option {
    std::string name, description, heading;
    Value value, initial;
    Variable variable;
    Allowed allowed;
    bool set = false;
    bool left_out = false;
  };
  const Option& find(const std::string& name) const;
  Option* search(const std::string& name);
  void refuse_bad_words(int argc, const char* const* argv);
  std::string suggestion(const std::string& word) const;
  static void assign(Option& option, Value value);

  std::string program_, description_, heading_;
  std::string words_placeholder_;
  std::vector<std::string>* words_ = nullptr;
  std::vector<Option> options_;
};

}  // namespace gs
