// Writes and reads guides, like a program for authors.

import { randomUUID } from "node:crypto";
import { readFile } from "node:fs/promises";
import { fromJson } from "@bufbuild/protobuf";
import { credentials } from "@grpc/grpc-js";
import {
  AccessLevel,
  AccessLevelSchema,
  StepType,
  StepTypeSchema,
  TaskDocumentSchema,
} from "./generated/expertise/v1/resources_pb.js";
import { PlacementSchema, StepService } from "./generated/expertise/v1/step_service_pb.js";
import { TaskService } from "./generated/expertise/v1/task_service_pb.js";
import { Service, explain, violations } from "./service.js";

const PRODUCT = 1204n;

/** @import { DescEnum } from "@bufbuild/protobuf" */

/** The service for one account. */
class Author {
  /** @param {Service} service */
  constructor(service) {
    this.service = service;
  }

  async createGuide(name, roles) {
    // A request_id makes it safe to retry a create.
    const { task } = await this.service.call(TaskService.method.createTask, {
      task: { name, productId: PRODUCT, roles },
      requestId: randomUUID(),
    });
    return task;
  }

  async importGuide(document) {
    const { task } = await this.service.call(TaskService.method.importTask, {
      document,
      requestId: randomUUID(),
    });
    return task;
  }

  /** Inserts a step after another one of its guide, or at the end. */
  insert(step, { prevstep = "", requestId = randomUUID() } = {}) {
    return this.service.call(StepService.method.createStep, { step, prevstep, requestId });
  }

  /** Changes the fields of a step that the paths name. */
  update(step, paths) {
    return this.service.call(StepService.method.updateStep, { step, updateMask: { paths } });
  }

  /** All steps of a guide with their bodies, page after page. */
  async *listSteps(task) {
    let pageToken = "";
    do {
      const { steps, nextPageToken } = await this.service.call(StepService.method.listSteps, {
        task,
        expand: ["body"],
        pageSize: 4,
        pageToken,
      });
      yield* steps;
      pageToken = nextPageToken;
    } while (pageToken);
  }
}

/** Creates a guide step by step. */
async function buildAGuide(author) {
  const guide = await author.createGuide("Laptop will not start", [AccessLevel.USER]);
  console.log(`Created "${guide.name}" for ${nameOf(AccessLevelSchema, guide.roles[0])}`);

  const question = {
    name: "charge_light",
    type: "enum",
    values: [
      { key: "on", value: "Yes" },
      { key: "off", value: "No" },
    ],
  };
  const lamp = await author.insert({
    task: guide.guid,
    productId: PRODUCT,
    type: StepType.OBSERVATION,
    title: "Is the charging lamp lit?",
    feedbackConfig: [question],
  });
  showPlacement(lamp);
  const end = await author.insert({
    task: guide.guid,
    productId: PRODUCT,
    type: StepType.END,
    title: "Call the service desk",
  });
  showPlacement(end);
  const outlet = await author.insert(
    {
      task: guide.guid,
      productId: PRODUCT,
      type: StepType.SOLUTION,
      title: "Try another outlet",
      body: "<p>Without a power strip.</p>",
      cost: 2,
      dependencyShorthand: "components.1204.charge_light = off",
    },
    { prevstep: lamp.step.guid },
  );
  showPlacement(outlet);

  // With the etag, the update fails if the step has changed since. The cost is not in
  // the mask and stays; the type cannot be changed.
  const { guid, etag } = outlet.step;
  const updated = await author.update(
    { guid, etag, title: "Try an outlet in another room", cost: 99, type: StepType.IDP },
    ["title", "type"],
  );
  console.log(`Updated: "${updated.step.title}", cost ${updated.step.cost}`);
  console.log(`Ignored: ${updated.ignoredPaths.join(", ")}`);
  return guide;
}

/** Imports a guide with one call, and lists its steps. */
async function importAGuide(author, file) {
  const document = fromJson(TaskDocumentSchema, JSON.parse(await readFile(file, "utf8")));
  const guide = await author.importGuide(document);
  console.log(`Imported "${guide.name}": ${guide.steps.length} steps`);
  let number = 1;
  for await (const step of author.listSteps(guide.guid)) {
    const type = nameOf(StepTypeSchema, step.type);
    console.log(`${number++}. ${type}, cost ${step.cost}: ${step.title}`);
    console.log(`   ${step.body ?? "(no body)"}`);
    console.log(`   de: ${step.translations.de?.title ?? ""}`);
  }
}

/** Sends a request with four violations; the error lists all of them. */
async function sendInvalidRequest(author, guide) {
  const step = {
    task: guide.guid,
    productId: 0n,
    type: StepType.OBSERVATION,
    title: " ",
    dependencyShorthand: "components.1204.charge_light is off",
  };
  try {
    await author.insert(step);
  } catch (error) {
    console.log(`Error: ${explain(error)}`);
    for (const { field, description, reason } of violations(error)) {
      console.log(`- ${field}: ${description} (${reason})`);
    }
  }
}

/** Repeats a create, as after a lost response. */
async function repeat(author, guide) {
  const step = {
    task: guide.guid,
    productId: PRODUCT,
    type: StepType.INFORMATION,
    title: "Keep the receipt",
  };
  const requestId = randomUUID();
  const first = await author.insert(step, { requestId });
  const again = await author.insert(step, { requestId });
  const same = first.step.guid === again.step.guid;
  console.log(`Repeated: ${same ? "the same step" : "a second step"}`);

  try {
    await author.insert({ ...step, title: "Keep the box" }, { requestId });
  } catch (error) {
    console.log(`Changed and repeated: ${explain(error)}`);
  }

  console.log(`Steps of "${guide.name}":`);
  let number = 1;
  for await (const { title } of author.listSteps(guide.guid)) {
    console.log(`${number++}. ${title}`);
  }
}

function showPlacement({ step, placement }) {
  console.log(`Inserted "${step.title}": ${nameOf(PlacementSchema, placement)}`);
}

/**
 * The name of an enum's value in the contract.
 *
 * @param {DescEnum} schema
 * @param {number} number
 */
function nameOf(schema, number) {
  return schema.value[number]?.name ?? String(number);
}

const [address, account, file] = process.argv.slice(2);
if (!file) {
  console.error("Usage: client.js ADDRESS ACCOUNT GUIDE");
  process.exit(2);
}
const service = new Service(address, credentials.createInsecure(), account);
try {
  const author = new Author(service);
  const guide = await buildAGuide(author);
  await importAGuide(author, file);
  await sendInvalidRequest(author, guide);
  await repeat(author, guide);
} catch (error) {
  console.error(`The call failed: ${explain(error)}`);
  process.exitCode = 1;
} finally {
  service.close();
}
