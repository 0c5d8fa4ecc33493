// Every place in the agent that asks something of the outside, read from its sources: requests name theirs as `site: 'part.verb'`.
import { readdirSync, readFileSync } from 'node:fs';

/**
 * The sites of the given parts, such as `act` or `lease`; of every part when none is given. Who keeps a shared object
 * (cluster/shared/shared-object.ts) names what comes before its verbs, as in `site: 'ledger'`. Those of watches are named by what is watched.
 */
export function callSites(parts?: readonly string[]): readonly string[] {
  const sources = ['agent', 'cluster'].flatMap((folder) =>
    readdirSync(folder, { recursive: true, encoding: 'utf8' })
      .filter((file) => file.endsWith('.ts'))
      .map((file) => ({ file, text: readFileSync(`${folder}/${file}`, 'utf8') })),
  );
  const shared = sources.find(({ file }) => file === 'shared/shared-object.ts')?.text ?? '';
  const verbs = [...shared.matchAll(/`\$\{site\}\.(\w+)`/g)].map(([, verb = '']) => verb);
  const all = sources.flatMap(({ text }) => {
    const lines = text.split('\n').filter((line) => /\bsite\b|\w+Site\b/.test(line));
    const named = lines.flatMap((line) => [...line.matchAll(/'([a-z]\w*(?:\.\w+)+)'/g)].map(([, site = '']) => site));
    if (!text.includes('new SharedObject')) return named;
    const first = lines.flatMap((line) => [...line.matchAll(/\bsite(?::| =) '([a-z][\w.]*)'/g)].map(([, part = '']) => part));
    return first.flatMap((part) => verbs.map((verb) => `${part}.${verb}`));
  });
  return [...new Set(all)].filter((site) => parts === undefined || parts.includes(site.split('.')[0] ?? '')).sort();
}
