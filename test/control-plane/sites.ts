// Every place in the agent that asks something of the outside, read from its sources: requests name theirs as `site: 'part.verb'`.
import { readdirSync, readFileSync } from 'node:fs';

/**
 * The sites of the given parts, such as `act` or `lease`. What several parts share (cluster/shared/shared-object.ts) takes the first word from
 * its caller, as in `site: 'ledger'`, and adds the second.
 */
export function callSites(parts: readonly string[]): readonly string[] {
  const sources = ['agent', 'cluster'].flatMap((folder) =>
    readdirSync(folder, { recursive: true, encoding: 'utf8' })
      .filter((file) => file.endsWith('.ts'))
      .map((file) => ({ file, text: readFileSync(`${folder}/${file}`, 'utf8') })),
  );
  const shared = sources.find(({ file }) => file === 'shared/shared-object.ts')?.text ?? '';
  const verbs = [...shared.matchAll(/`\$\{site\}\.(\w+)`/g)].map(([, verb = '']) => verb);
  const lines = sources.flatMap(({ text }) => text.split('\n')).filter((line) => /\bsite\b/.test(line));
  const whole = lines.flatMap((line) => [...line.matchAll(/'([a-z]\w*\.\w+)'/g)].map(([, site = '']) => site));
  const first = lines.flatMap((line) => [...line.matchAll(/\bsite(?::| =) '([a-z]\w*)'/g)].map(([, part = '']) => part));
  const all = [...whole, ...first.flatMap((part) => verbs.map((verb) => `${part}.${verb}`))];
  return [...new Set(all)].filter((site) => parts.includes(site.split('.')[0] ?? '')).sort();
}
