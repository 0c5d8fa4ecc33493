// Finds every place in the agent that sends a request, from its sources: requests name their place as `site: 'part.verb'`.
import { readdirSync, readFileSync } from 'node:fs';

/**
 * Returns the sites of the given parts, such as `act` or `lease`; without parts all sites. A shared object (cluster/shared/shared-
 * object.ts) names the part, as in `site: 'ledger'`, and adds the verbs. The site of a watch is the name of the watched resource.
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
