#include "service.h"

#include <google/rpc/code.pb.h>
#include <google/rpc/status.pb.h>

// gRPC repeats calls that fail with these codes. It waits as long as the server says, or
// else as long as this policy, and not at all when the server says that a retry does not
// help. That is safe: reads, updates with an etag and creates with a request_id can be sent
// twice.
static constexpr char kServiceConfig[] = R"({
  "methodConfig": [{
    "name": [{"service": "expertise.v1.TaskService"}, {"service": "expertise.v1.StepService"}],
    "retryPolicy": {
      "maxAttempts": 5,
      "initialBackoff": "0.2s",
      "maxBackoff": "2s",
      "backoffMultiplier": 2,
      "retryableStatusCodes": ["UNAVAILABLE", "RESOURCE_EXHAUSTED", "ABORTED"]
    }
  }]
})";

// gRPC retries no request that is larger than this buffer, by default 256 KiB.
static constexpr int kRetryBufferBytes = 80 * 1024 * 1024;

std::shared_ptr<grpc::Channel> Connect(const std::string& address) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMaxMessageBytes);
  arguments.SetInt(GRPC_ARG_PER_RPC_RETRY_BUFFER_SIZE, kRetryBufferBytes);
  arguments.SetServiceConfigJSON(kServiceConfig);
  return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
}

CallError::CallError(const grpc::Status& status)
    : std::runtime_error(status.error_message()), code_(status.error_code()) {
  google::rpc::Status details;
  if (!details.ParseFromString(status.error_details())) return;
  for (const auto& detail : details.details()) {
    if (detail.Is<google::rpc::ErrorInfo>()) detail.UnpackTo(&info_);
    if (detail.Is<google::rpc::BadRequest>()) detail.UnpackTo(&bad_request_);
  }
}

std::string CallError::Explain() const {
  const auto code = static_cast<google::rpc::Code>(code_);
  return google::rpc::Code_Name(code) + ", " + (info_.reason().empty() ? what() : info_.reason());
}

std::vector<google::rpc::BadRequest::FieldViolation> CallError::Violations() const {
  return {bad_request_.field_violations().begin(), bad_request_.field_violations().end()};
}
