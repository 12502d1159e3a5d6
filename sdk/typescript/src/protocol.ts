// The messages and services of parley.v1 as generated, for what the rest of
// this package has no words for.
export * from "./gen/command_pb.js";
export * from "./gen/service_pb.js";
