import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { defectMessages } from '../../simulation/stage.ts';

it('knows what the agent says when it has caught itself, in the words of the agent', () => {
  const root = new URL('../../agent', import.meta.url).pathname;
  const files = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.ts'));
  const agent = files.map((name) => readFileSync(join(root, name), 'utf8')).join('\n');
  // The last one is what simulation/process/agent-process.ts listens for.
  for (const message of [...defectMessages, 'listener failed']) expect(agent).toContain(`'${message}'`);
});
