// The verb init: policy files for the groups that exist as labels and annotations.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { adoptGroups } from '../../policies/adopt/adopt.ts';
import { countFindings, type Finding, sortFindings } from '../../policies/findings/finding.ts';
import { adoptionFindings } from '../../policies/lint/adoption.ts';
import { loadPolicies } from '../../policies/load.ts';
import type { RolloutGroup } from '../../policies/schema/kinds.ts';
import { writeDocuments } from '../../policies/write.ts';

import type { ConnectionFlags } from '../connection.ts';
import { type CommandContext, suggestNext } from '../context.ts';
import { type ExitCode, exitCodes } from '../exit-code.ts';
import { Failure, usageFailure } from '../failure.ts';
import { findingBlocks } from '../output/findings-text.ts';
import { plural } from '../output/words.ts';
import { readInput } from '../source/input.ts';

export interface InitOptions extends ConnectionFlags {
  readonly fromDir?: string;
  readonly fromCluster?: boolean;
  readonly allNamespaces?: boolean;
  readonly out: string;
  readonly force?: boolean;
}

interface PolicyPage {
  /** Below the output directory, with slashes. */
  readonly path: string;
  readonly text: string;
  readonly group: RolloutGroup;
}

export async function run(context: CommandContext, options: InitOptions): Promise<ExitCode> {
  const { out, force = false } = options;
  const { stdout, stderr, cwd } = context;
  const { groups, findings: all, source } = await adopted(context, options);
  for (const block of findingBlocks(all, stderr)) stderr.write(`${block}\n`);
  if (groups.length === 0) throw noGroup(source, all);
  const pages = pagesOf(groups);
  if (!force) refuseOverwriting(pages, out, cwd);
  for (const page of pages) {
    write(join(resolve(cwd, out), page.path), page.text);
    const { namespace = 'default', name } = page.group.metadata;
    const zones = page.group.spec.members.zones?.length ?? 0;
    stdout.write(`${join(out, page.path)}  RolloutGroup ${namespace}/${name}, ${plural(zones, 'zone')}\n`);
  }
  const plan = options.fromDir === undefined ? `plan --live -f ${out}` : `plan --current ${source} -f ${out}`;
  suggestNext(context, `lint ${out}`, `${plan} --set image=...`);
  return countFindings(all).error > 0 ? exitCodes.findings : exitCodes.done;
}

interface AdoptedGroups {
  readonly groups: readonly RolloutGroup[];
  readonly findings: readonly Finding[];
  /** What was read, in words for people. */
  readonly source: string;
}

async function adopted(context: CommandContext, options: InitOptions): Promise<AdoptedGroups> {
  const { fromDir, fromCluster = false } = options;
  if (fromCluster && fromDir !== undefined)
    throw usageFailure('--from-dir and --from-cluster are both given', 'groups come from one of them');
  if (fromCluster) return adoptedLive(context, options);
  if (fromDir === undefined) throw usageFailure('neither --from-dir nor --from-cluster is given', 'say where the groups are read from');
  const { manifests, findings: fileFindings } = loadPolicies(await readInput(fromDir, context));
  const { groups, findings } = adoptGroups(manifests.map(({ value }) => value));
  return { groups, findings: sortFindings([...fileFindings, ...adoptionFindings(findings, manifests)]), source: fromDir };
}

async function adoptedLive(context: CommandContext, options: InitOptions): Promise<AdoptedGroups> {
  const [{ withCluster }, { listIn }, { resources }] = await Promise.all([
    import('../connection.ts'),
    import('../source/cluster.ts'),
    import('../../cluster/request/resource.ts'),
  ]);
  return withCluster(context, options, 'read', async (cluster) => {
    const namespaces = options.allNamespaces === true ? undefined : [cluster.namespace];
    const { groups, findings } = adoptGroups(await listIn(cluster, resources.statefulSets, namespaces));
    const source = namespaces === undefined ? 'the cluster' : `namespace ${cluster.namespace}`;
    return { groups, findings: sortFindings(adoptionFindings(findings, [])), source };
  });
}

/** One file per group, below a folder per namespace when there are several namespaces. */
function pagesOf(groups: readonly RolloutGroup[]): readonly PolicyPage[] {
  const namespaces = new Set(groups.map(({ metadata }) => metadata.namespace));
  return groups.map((group) => {
    const { namespace = 'default', name } = group.metadata;
    return { path: namespaces.size > 1 ? `${namespace}/${name}.yaml` : `${name}.yaml`, text: writeDocuments([group]), group };
  });
}

/** Before anything is written, so that a refusal leaves everything as it was. A file that would not change is in nobody's way. */
function refuseOverwriting(pages: readonly PolicyPage[], out: string, cwd: string): void {
  const inTheWay = pages.filter(({ path, text }) => {
    const file = join(resolve(cwd, out), path);
    return existsSync(file) && readFileSync(file, 'utf8') !== text;
  });
  const [first] = inTheWay;
  if (first === undefined) return;
  throw new Failure({
    exitCode: exitCodes.usage,
    what: `${join(out, first.path)} exists and would change`,
    why: `${plural(inTheWay.length, 'file')} of ${pages.length} would lose what is in them`,
    todo: 'name another directory with --out, or overwrite them with --force',
  });
}

function write(file: string, text: string): void {
  try {
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
  } catch (error) {
    const why = (error as NodeJS.ErrnoException).code ?? String(error);
    throw new Failure({ exitCode: exitCodes.notAllowed, what: `${file} cannot be written`, why });
  }
}

function noGroup(source: string, findings: readonly Finding[]): Failure {
  const { error } = countFindings(findings);
  return new Failure({
    exitCode: exitCodes.notFound,
    what: `${source} has no StatefulSet with the label rollout-group`,
    ...(error === 0 ? {} : { why: `${plural(error, 'error')} above may hide one` }),
    todo: 'name the directory with the rendered manifests, or the namespace of the StatefulSets',
  });
}
