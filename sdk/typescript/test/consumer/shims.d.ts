// What the README's examples have around them.
declare module "ai" {
  export function jsonSchema(schema: Record<string, unknown>): { jsonSchema: unknown };
}
declare const process: { env: { PARLEY_TOKEN?: string } };
