// Writes the files that follow from the schema; with --check it only says which are stale.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { z } from 'zod';
import { planSchema } from '../engine/plan-schema.ts';
import { schemas } from '../policies/schema/kinds.ts';

const files = new Map<string, string>();
for (const [kind, schema] of Object.entries(schemas)) {
  files.set(`deploy/schemas/${kind.toLowerCase()}.json`, `${JSON.stringify(z.toJSONSchema(schema, { io: 'input' }), null, 2)}\n`);
}
files.set('deploy/schemas/plan.json', `${JSON.stringify(planSchema, null, 2)}\n`);

const check = process.argv.includes('--check');
let stale = 0;
for (const [file, content] of files) {
  let present: string | undefined;
  try {
    present = readFileSync(file, 'utf8');
  } catch {
    present = undefined;
  }
  if (present === content) continue;
  stale += 1;
  if (check) console.error(`${file} is stale: run npm run generate`);
  else {
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, content);
  }
}
if (check && stale > 0) process.exitCode = 1;
