// Writes and reads guides, like a program for authors.

#include <array>
#include <fstream>
#include <iostream>
#include <iterator>

#include <expertise/v1/step_service.grpc.pb.h>
#include <expertise/v1/task_service.grpc.pb.h>
#include <google/protobuf/util/json_util.h>
#include <uuid/uuid.h>

#include "service.h"

using namespace expertise::v1;

namespace {

constexpr std::int64_t kProduct = 1204;

std::string NewId() {
  uuid_t id;
  uuid_generate(id);
  std::array<char, UUID_STR_LEN> text;
  uuid_unparse_lower(id, text.data());
  return text.data();
}

// Both services for one account.
class Author {
 public:
  Author(const std::shared_ptr<grpc::Channel>& channel, const std::string& account)
      : tasks_(channel, account), steps_(channel, account) {}

  Task CreateGuide(const std::string& name, AccessLevel role) const {
    CreateTaskRequest request;
    request.mutable_task()->set_name(name);
    request.mutable_task()->set_product_id(kProduct);
    request.mutable_task()->add_roles(role);
    // A request_id makes it safe to retry a create.
    request.set_request_id(NewId());
    return tasks_.Call(&TaskService::Stub::CreateTask, request).task();
  }

  Task Import(const TaskDocument& document) const {
    ImportTaskRequest request;
    *request.mutable_document() = document;
    request.set_request_id(NewId());
    return tasks_.Call(&TaskService::Stub::ImportTask, request).task();
  }

  // Inserts a step after another one of its guide, or at the end.
  CreateStepResponse Insert(const Step& step, const std::string& prevstep = "",
                            const std::string& request_id = NewId()) const {
    CreateStepRequest request;
    *request.mutable_step() = step;
    request.set_prevstep(prevstep);
    request.set_request_id(request_id);
    return steps_.Call(&StepService::Stub::CreateStep, request);
  }

  UpdateStepResponse Update(const Step& step, const std::vector<std::string>& paths) const {
    UpdateStepRequest request;
    *request.mutable_step() = step;
    for (const auto& path : paths) request.mutable_update_mask()->add_paths(path);
    return steps_.Call(&StepService::Stub::UpdateStep, request);
  }

  // All steps of a guide with their bodies, page after page.
  std::vector<Step> ListSteps(const std::string& task) const {
    ListStepsRequest request;
    request.set_task(task);
    request.add_expand("body");
    request.set_page_size(4);
    std::vector<Step> steps;
    do {
      const auto response = steps_.Call(&StepService::Stub::ListSteps, request);
      steps.insert(steps.end(), response.steps().begin(), response.steps().end());
      request.set_page_token(response.next_page_token());
    } while (!request.page_token().empty());
    return steps;
  }

 private:
  Client<TaskService> tasks_;
  Client<StepService> steps_;
};

Step NewStep(const Task& guide, StepType type, const std::string& title) {
  Step step;
  step.set_task(guide.guid());
  step.set_product_id(kProduct);
  step.set_type(type);
  step.set_title(title);
  return step;
}

void ShowPlacement(const CreateStepResponse& inserted) {
  std::cout << "Inserted \"" << inserted.step().title()
            << "\": " << Placement_Name(inserted.placement()) << '\n';
}

// Creates a guide step by step.
Task BuildAGuide(const Author& author) {
  const Task guide = author.CreateGuide("Laptop will not start", ACCESS_LEVEL_USER);
  std::cout << "Created \"" << guide.name() << "\" for " << AccessLevel_Name(guide.roles(0)) << '\n';

  Step question = NewStep(guide, STEP_TYPE_OBSERVATION, "Is the charging lamp lit?");
  FeedbackConfig& config = *question.add_feedback_config();
  config.set_name("charge_light");
  config.set_type("enum");
  for (const auto& [key, value] : {std::pair{"on", "Yes"}, std::pair{"off", "No"}}) {
    FeedbackValue& answer = *config.add_values();
    answer.set_key(key);
    answer.set_value(value);
  }
  const auto lamp = author.Insert(question);
  ShowPlacement(lamp);
  ShowPlacement(author.Insert(NewStep(guide, STEP_TYPE_END, "Call the service desk")));

  Step solution = NewStep(guide, STEP_TYPE_SOLUTION, "Try another outlet");
  solution.set_body("<p>Without a power strip.</p>");
  solution.set_cost(2);
  solution.set_dependency_shorthand("components.1204.charge_light = off");
  const auto outlet = author.Insert(solution, lamp.step().guid());
  ShowPlacement(outlet);

  // With the etag, the update fails if the step has changed since. The cost is not in
  // the mask and stays; the type cannot be changed.
  Step patch;
  patch.set_guid(outlet.step().guid());
  patch.set_etag(outlet.step().etag());
  patch.set_title("Try an outlet in another room");
  patch.set_cost(99);
  patch.set_type(STEP_TYPE_IDP);
  const auto updated = author.Update(patch, {"title", "type"});
  std::cout << "Updated: \"" << updated.step().title() << "\", cost " << updated.step().cost() << '\n';
  std::cout << "Ignored:";
  const char* separator = " ";
  for (const auto& path : updated.ignored_paths()) {
    std::cout << separator << path;
    separator = ", ";
  }
  std::cout << '\n';
  return guide;
}

TaskDocument ReadGuide(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error(path + " cannot be read");
  const std::string json{std::istreambuf_iterator<char>(file), {}};
  TaskDocument document;
  const auto status = google::protobuf::util::JsonStringToMessage(json, &document);
  if (!status.ok()) throw std::runtime_error(path + ": " + status.ToString());
  return document;
}

// Imports a guide with one call, and lists its steps.
void ImportAGuide(const Author& author, const std::string& path) {
  const Task guide = author.Import(ReadGuide(path));
  std::cout << "Imported \"" << guide.name() << "\": " << guide.steps_size() << " steps\n";
  int number = 1;
  for (const Step& step : author.ListSteps(guide.guid())) {
    std::cout << number++ << ". " << StepType_Name(step.type()) << ", cost " << step.cost() << ": "
              << step.title() << '\n';
    std::cout << "   " << (step.has_body() ? step.body() : "(no body)") << '\n';
    const auto german = step.translations().find("de");
    std::cout << "   de: " << (german == step.translations().end() ? "" : german->second.title()) << '\n';
  }
}

// Sends a request with four violations; the error lists all of them.
void SendInvalidRequest(const Author& author, const Task& guide) {
  Step step = NewStep(guide, STEP_TYPE_OBSERVATION, " ");
  step.set_product_id(0);
  step.set_dependency_shorthand("components.1204.charge_light is off");
  try {
    author.Insert(step);
  } catch (const CallError& refused) {
    std::cout << "Error: " << refused.Explain() << '\n';
    for (const auto& violation : refused.Violations()) {
      std::cout << "- " << violation.field() << ": " << violation.description() << " ("
                << violation.reason() << ")\n";
    }
  }
}

// Repeats a create, as after a lost response.
void Repeat(const Author& author, const Task& guide) {
  Step step = NewStep(guide, STEP_TYPE_INFORMATION, "Keep the receipt");
  const std::string request_id = NewId();
  const auto first = author.Insert(step, "", request_id);
  const auto again = author.Insert(step, "", request_id);
  const bool same = first.step().guid() == again.step().guid();
  std::cout << "Repeated: " << (same ? "the same step" : "a second step") << '\n';

  step.set_title("Keep the box");
  try {
    author.Insert(step, "", request_id);
  } catch (const CallError& refused) {
    std::cout << "Changed and repeated: " << refused.Explain() << '\n';
  }

  std::cout << "Steps of \"" << guide.name() << "\":\n";
  int number = 1;
  for (const Step& listed : author.ListSteps(guide.guid())) {
    std::cout << number++ << ". " << listed.title() << '\n';
  }
}

}  // namespace

int main(int argc, char* argv[]) {
  if (argc != 4) {
    std::cerr << "Usage: client ADDRESS ACCOUNT GUIDE\n";
    return 2;
  }
  const std::string address = argv[1], account = argv[2], path = argv[3];
  try {
    // The channel closes when its last owner is destroyed.
    const Author author(Connect(address), account);
    const Task guide = BuildAGuide(author);
    ImportAGuide(author, path);
    SendInvalidRequest(author, guide);
    Repeat(author, guide);
  } catch (const CallError& refused) {
    std::cerr << "The call failed: " << refused.Explain() << '\n';
    return 1;
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
  return 0;
}
