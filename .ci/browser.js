// Calls the service as a page of another origin does, and shows what came of it.
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { createGrpcWebTransport } from "@connectrpc/connect-web";
import { TaskService } from "./generated/expertise/v1/task_service_pb";
import { ErrorInfoSchema } from "./generated/google/rpc/error_details_pb";

const withAccount = (next) => (request) => {
  request.header.set("x-account-id", "browser");
  return next(request);
};
const baseUrl = new URLSearchParams(location.search).get("server");
const transport = createGrpcWebTransport({ baseUrl, interceptors: [withAccount] });
const tasks = createClient(TaskService, transport);

function expect(found, wanted) {
  if (found !== wanted) throw new Error(`${found} instead of ${wanted}`);
}

async function makeCalls() {
  const { task } = await tasks.createTask({ task: { name: "From a page", productId: 1n } });
  const { task: found } = await tasks.getTask({ guid: task.guid });
  expect(found.name, "From a page");
  // A response with many frames.
  const instructions = Array.from({ length: 1000 }, (_, number) => ({ text: `${number} ${"x".repeat(300)}` }));
  const steps = [{ type: 1, productId: 1n, title: "Large", instructions }];
  const { task: large } = await tasks.importTask({ document: { task: { name: "Large", productId: 1n }, steps } });
  const { document: exported } = await tasks.exportTask({ guid: large.guid });
  expect(exported.steps[0].instructions.length, 1000);
  try {
    await tasks.getTask({ guid: "no guid" });
    throw new Error("it is accepted");
  } catch (thrown) {
    const error = ConnectError.from(thrown);
    expect(error.code, Code.InvalidArgument);
    expect(error.findDetails(ErrorInfoSchema)[0].reason, "FIELD_INVALID");
  }
}

makeCalls().then(
  () => document.body.append("all calls were answered"),
  (error) => document.body.append(`${error} ${error.stack}`),
);
