package main

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode"

	"expertise/errdetails"
	pb "expertise/v1"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// The time limit of a call with its retries. By default, gRPC waits forever.
const deadline = 10 * time.Second

// The body of a step may be larger than the 4 MB that gRPC accepts by default.
const maxMessageBytes = 72 * 1024 * 1024

// gRPC does not retry requests larger than this buffer, by default 256 KiB.
const retryBufferBytes = 80 * 1024 * 1024

// gRPC retries calls that fail with these codes. It waits as long as the server says, or else
// as this policy says, and does not retry if the server says that a retry does not help. This
// is safe: reads, updates with an etag and creates with a request_id can be sent twice.
const serviceConfig = `{
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
}`

// service is the service for one account.
type service struct {
	tasks pb.TaskServiceClient
	steps pb.StepServiceClient
	close func() error
}

func connect(address, account string) (*service, error) {
	channel, err := grpc.Dial(address,
		grpc.WithInsecure(),
		grpc.WithDefaultServiceConfig(serviceConfig),
		grpc.WithDefaultCallOptions(
			grpc.MaxCallRecvMsgSize(maxMessageBytes),
			grpc.MaxRetryRPCBufferSize(retryBufferBytes),
		),
		grpc.WithUnaryInterceptor(forAccount(account)),
	)
	if err != nil {
		return nil, err
	}
	return &service{pb.NewTaskServiceClient(channel), pb.NewStepServiceClient(channel), channel.Close}, nil
}

// forAccount sends the account with every call, and sets its deadline.
func forAccount(account string) grpc.UnaryClientInterceptor {
	return func(ctx context.Context, method string, request, response interface{}, channel *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
		ctx, cancel := context.WithTimeout(ctx, deadline)
		defer cancel()
		ctx = metadata.AppendToOutgoingContext(ctx, "x-account-id", account)
		return invoke(ctx, method, request, response, channel, options...)
	}
}

// explain returns the code of an error and its reason.
func explain(err error) string {
	failed, isStatus := status.FromError(err)
	if !isStatus {
		return err.Error()
	}
	reason := failed.Message()
	for _, detail := range failed.Details() {
		if info, ok := detail.(*errdetails.ErrorInfo); ok {
			reason = info.Reason
		}
	}
	return fmt.Sprintf("%s, %s", codeName(failed.Code()), reason)
}

// violations returns the violations of the request.
func violations(err error) []*errdetails.BadRequest_FieldViolation {
	for _, detail := range status.Convert(err).Details() {
		if request, ok := detail.(*errdetails.BadRequest); ok {
			return request.FieldViolations
		}
	}
	return nil
}

// codeName returns a code as the specification spells it: Go calls INVALID_ARGUMENT
// InvalidArgument.
func codeName(code codes.Code) string {
	var name strings.Builder
	for index, letter := range code.String() {
		if index > 0 && unicode.IsUpper(letter) {
			name.WriteByte('_')
		}
		name.WriteRune(unicode.ToUpper(letter))
	}
	return name.String()
}
