// A stand-in for rclcpp: what a generated node calls, as documented. Written for these tests.
// spin() reads commands: "message TOPIC numbers", "set NAME numbers" and "step"; it prints what is
// published, and what is wrong with parameters.
#pragma once
#include <cstdint>
#include <cstdio>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <type_traits>
#include <vector>

namespace rcl_interfaces::msg
{
struct SetParametersResult
{
  bool successful = false;
  std::string reason;
};
}  // namespace rcl_interfaces::msg

namespace rclcpp
{
inline std::vector<double> read_numbers(std::istream & line)
{
  std::vector<double> all;
  for (std::string word; line >> word;) {
    all.push_back(std::stod(word));
  }
  return all;
}

struct Reader
{
  const std::vector<double> & numbers;
  std::size_t at = 0;
  template <class T> void operator()(T & value) { value = static_cast<T>(numbers.at(at++)); }
};
struct Printer
{
  template <class T> void operator()(T & value) { std::printf(" %a", static_cast<double>(value)); }
};

class Parameter
{
public:
  std::string name;
  std::vector<double> numbers;
  const std::string & get_name() const { return name; }
  template <class T> T get_value() const
  {
    if constexpr (std::is_arithmetic_v<T>) {
      return static_cast<T>(numbers.at(0));
    } else {
      return T(numbers.begin(), numbers.end());
    }
  }
};

template <class M> struct Subscription { using SharedPtr = std::shared_ptr<Subscription>; };
template <class M> struct Publisher
{
  using SharedPtr = std::shared_ptr<Publisher>;
  std::string topic;
  void publish(M message)
  {
    std::printf("%s", topic.c_str());
    message.each(Printer{});
    std::printf("\n");
  }
};
struct TimerBase { using SharedPtr = std::shared_ptr<TimerBase>; };
namespace node_interfaces
{
struct OnSetParametersCallbackHandle
{
  using SharedPtr = std::shared_ptr<OnSetParametersCallbackHandle>;
};
}  // namespace node_interfaces
struct Clock { using SharedPtr = std::shared_ptr<Clock>; };
struct Duration
{
  double seconds;
  static Duration from_seconds(double s) { return {s}; }
};
struct ListParametersResult { std::vector<std::string> names; };

class Node
{
public:
  using SharedPtr = std::shared_ptr<Node>;
  using Check =
    std::function<rcl_interfaces::msg::SetParametersResult(const std::vector<Parameter> &)>;
  explicit Node(const std::string & name) { std::printf("node %s\n", name.c_str()); }
  virtual ~Node() = default;
  Clock::SharedPtr get_clock() { return nullptr; }
  template <class T> T declare_parameter(const std::string & name, const T & value)
  {
    Parameter & p = parameters[name];
    p.name = name;
    if constexpr (std::is_arithmetic_v<T>) {
      p.numbers = {static_cast<double>(value)};
    } else {
      p.numbers.assign(value.begin(), value.end());
    }
    return value;
  }
  ListParametersResult list_parameters(const std::vector<std::string> &, std::uint64_t) const
  {
    ListParametersResult all;
    for (const auto & pair : parameters) {
      all.names.push_back(pair.first);
    }
    return all;
  }
  Parameter get_parameter(const std::string & name) const { return parameters.at(name); }
  node_interfaces::OnSetParametersCallbackHandle::SharedPtr add_on_set_parameters_callback(Check f)
  {
    check = f;
    return nullptr;
  }
  template <class M, class F>
  std::shared_ptr<Subscription<M>> create_subscription(const std::string & topic, int, F f)
  {
    topics[topic] = [f](const std::vector<double> & numbers) {
      M message;
      Reader reader{numbers};
      message.each(std::ref(reader));
      f(message);
    };
    return nullptr;
  }
  template <class M> std::shared_ptr<Publisher<M>> create_publisher(const std::string & t, int)
  {
    auto publisher = std::make_shared<Publisher<M>>();
    publisher->topic = t;
    return publisher;
  }
  std::map<std::string, Parameter> parameters;
  std::map<std::string, std::function<void(const std::vector<double> &)>> topics;
  Check check;
  std::function<void()> tick;
};

template <class F>
TimerBase::SharedPtr create_timer(Node * node, Clock::SharedPtr, Duration period, F f)
{
  std::printf("timer %.17g\n", period.seconds);
  node->tick = f;
  return nullptr;
}

inline void init(int, char **) {}
inline void shutdown() {}
inline void spin(Node::SharedPtr node)
{
  for (std::string text; std::getline(std::cin, text);) {
    std::istringstream line(text);
    std::string command, name;
    line >> command >> name;
    if (command == "message") {
      node->topics.at(name)(read_numbers(line));
    } else if (command == "set") {
      const auto result = node->check({Parameter{name, read_numbers(line)}});
      if (!result.successful) {
        std::printf("error %s\n", result.reason.c_str());
      }
    } else {
      node->tick();
    }
  }
}
}  // namespace rclcpp
