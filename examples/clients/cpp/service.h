// The service for one account: calls, and details of errors.
#pragma once

#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <google/rpc/error_details.pb.h>
#include <grpcpp/grpcpp.h>

// The time limit of a call with its retries. By default gRPC waits for ever.
constexpr std::chrono::seconds kDeadline{10};

// The body of a step may be larger than the 4 MB that gRPC accepts by default.
constexpr int kMaxMessageBytes = 72 * 1024 * 1024;

std::shared_ptr<grpc::Channel> Connect(const std::string& address);

// A call that failed.
class CallError : public std::runtime_error {
 public:
  explicit CallError(const grpc::Status& status);

  // The code and the reason.
  std::string Explain() const;

  // The violations of the request.
  std::vector<google::rpc::BadRequest::FieldViolation> Violations() const;

 private:
  grpc::StatusCode code_;
  google::rpc::ErrorInfo info_;
  google::rpc::BadRequest bad_request_;
};

// A stub of one service, for one account.
template <typename Service>
class Client {
 public:
  Client(const std::shared_ptr<grpc::Channel>& channel, std::string account)
      : stub_(Service::NewStub(channel)), account_(std::move(account)) {}

  // Calls a method of the stub; throws CallError.
  template <typename Request, typename Response>
  Response Call(grpc::Status (Service::Stub::*method)(grpc::ClientContext*, const Request&, Response*),
                const Request& request) const {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kDeadline);
    context.AddMetadata("x-account-id", account_);
    Response response;
    const grpc::Status status = (*stub_.*method)(&context, request, &response);
    if (!status.ok()) throw CallError(status);
    return response;
  }

 private:
  std::unique_ptr<typename Service::Stub> stub_;
  std::string account_;
};
