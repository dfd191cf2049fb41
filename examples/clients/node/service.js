// The service for one account: calls, and details of errors.

import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { anyUnpack } from "@bufbuild/protobuf/wkt";
import { Client, Metadata, status } from "@grpc/grpc-js";
import { BadRequestSchema, ErrorInfoSchema } from "./generated/google/rpc/error_details_pb.js";
import { StatusSchema } from "./generated/google/rpc/status_pb.js";

/**
 * @import { DescMessage, DescMethodUnary, MessageInitShape, MessageShape } from "@bufbuild/protobuf"
 * @import { ChannelCredentials, ServiceError } from "@grpc/grpc-js"
 */

// The time limit of a call with its retries, in milliseconds. By default gRPC waits for
// ever.
const DEADLINE = 10_000;

// gRPC repeats calls that fail with these codes. It waits as long as the server says, or
// else as long as this policy, and not at all when the server says that a retry does not
// help. That is safe: reads, updates with an etag and creates with a requestId can be sent
// twice.
const SERVICE_CONFIG = {
  methodConfig: [
    {
      name: [{ service: "expertise.v1.TaskService" }, { service: "expertise.v1.StepService" }],
      retryPolicy: {
        maxAttempts: 5,
        initialBackoff: "0.2s",
        maxBackoff: "2s",
        backoffMultiplier: 2,
        retryableStatusCodes: ["UNAVAILABLE", "RESOURCE_EXHAUSTED", "ABORTED"],
      },
    },
  ],
};

const OPTIONS = {
  // The body of a step may be larger than the 4 MB that gRPC accepts by default.
  "grpc.max_receive_message_length": 72 * 1024 * 1024,
  // gRPC retries no request that is larger than these buffers, of a call and of all calls;
  // by default 1 MiB and 16 MiB.
  "grpc.per_rpc_retry_buffer_size": 80 * 1024 * 1024,
  "grpc.retry_buffer_size": 160 * 1024 * 1024,
  "grpc.service_config": JSON.stringify(SERVICE_CONFIG),
};

export class Service {
  #client;
  #metadata = new Metadata();

  /**
   * @param {string} address
   * @param {ChannelCredentials} credentials
   * @param {string} account
   */
  constructor(address, credentials, account) {
    this.#client = new Client(address, credentials, OPTIONS);
    this.#metadata.set("x-account-id", account);
  }

  /**
   * Calls a method of the contract.
   *
   * @template {DescMessage} I
   * @template {DescMessage} O
   * @param {DescMethodUnary<I, O>} method
   * @param {MessageInitShape<I>} request
   * @returns {Promise<MessageShape<O>>}
   */
  call(method, request) {
    return new Promise((resolve, reject) => {
      this.#client.makeUnaryRequest(
        `/${method.parent.typeName}/${method.name}`,
        (message) => Buffer.from(toBinary(method.input, message)),
        (bytes) => fromBinary(method.output, bytes),
        create(method.input, request),
        this.#metadata,
        { deadline: Date.now() + DEADLINE },
        (error, response) => (response ? resolve(response) : reject(error)),
      );
    });
  }

  close() {
    this.#client.close();
  }
}

/**
 * The code of an error and its reason. Throws other errors.
 *
 * @param {ServiceError} error
 */
export function explain(error) {
  if (!(error.code in status)) throw error;
  const reason = detail(error, ErrorInfoSchema)?.reason;
  return `${status[error.code]}, ${reason ?? error.details}`;
}

/**
 * The violations of the request.
 *
 * @param {ServiceError} error
 */
export function violations(error) {
  return detail(error, BadRequestSchema)?.fieldViolations ?? [];
}

/**
 * The detail of this type in an error, if it has one.
 *
 * @template {DescMessage} D
 * @param {ServiceError} error
 * @param {D} schema
 */
function detail(error, schema) {
  const [bytes] = error.metadata?.get("grpc-status-details-bin") ?? [];
  if (!(bytes instanceof Buffer)) return undefined;
  const { details } = fromBinary(StatusSchema, bytes);
  return details.map((any) => anyUnpack(any, schema)).find((message) => message);
}
