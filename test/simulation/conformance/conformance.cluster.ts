// The model of the API server and a real one are asked the same, thousands of times, and have to say the same.
//
// Not asked, because the model does not know it:
// - server-side apply, strategic merge patches and the deletion of collections; who owns which field (managedFields), and therefore a number
//   that a write to /scale finds there already, which makes a new version when it had another owner;
// - creations in a namespace that does not exist: the model has every namespace; the service account that a pod needs;
// - what the schema of a custom kind fills in or refuses, but for the bounds of its replicas: objects are written out in full;
// - finalizers without a domain, which some kinds refuse and others do not; `immutable` of a ConfigMap that is no boolean;
// - dry runs of a deletion that takes the last finalizer, or of a pod that goes already: the real one answers with an empty object;
// - a deletion that names a resourceVersion and takes the last finalizer by its policy, which the real one refuses as a conflict.
// Versions from before a compaction are asked for by watches of custom kinds only, whose caches begin late; lists that outlive one are not, for
// the real one compacts every five minutes.
import { readFileSync } from 'node:fs';
import { beforeAll, expect, it } from 'vitest';
import { parse } from 'yaml';
import type { KubernetesObject } from '../../control-plane/client.ts';
import type { ControlPlane } from '../../control-plane/control-plane.ts';
import { installReplicaTemplates } from '../../control-plane/replica-template.ts';
import { describeOnControlPlane } from '../../control-plane/suite.ts';
import { compare, type Difference, tell } from './compare.ts';
import { generate } from './generate.ts';
import { collectionOf, type Kind, objectOf, replicaTemplates, rolloutGroups } from './kinds.ts';
import { modelTarget } from './model-target.ts';
import type { Operation, Recording, Sequence } from './operation.ts';
import { lastLabel, play } from './play.ts';
import { RealServer } from './real-server.ts';
import { shrink } from './shrink.ts';

/** `CONFORMANCE_SEED=7 CONFORMANCE_SEQUENCES=20000` tries others, and more. */
const seed = Number(process.env['CONFORMANCE_SEED'] ?? 1);
const sequenceCount = Number(process.env['CONFORMANCE_SEQUENCES'] ?? 2000);
/** The real server against itself: what is left after normalising is no chance. */
const selfCount = Number(process.env['CONFORMANCE_SELF'] ?? 100);
/** Differences that are told; more of them are seldom another story. */
const shownCount = Number(process.env['CONFORMANCE_SHOWN'] ?? 3);

type Names = readonly [string, string];

/** The server needs milliseconds to tell its caches of a write: many sequences wait for that side by side. */
const inFlight = 48;

interface Definition extends KubernetesObject {
  readonly status?: { readonly conditions?: readonly { readonly type: string; readonly status: string }[] };
}

async function inParallel(count: number, work: (number: number) => Promise<void>): Promise<void> {
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < count) await work(next++);
  };
  await Promise.all(Array.from({ length: inFlight }, worker));
}

describeOnControlPlane(
  'the model of the API server',
  (controlPlane: () => ControlPlane) => {
    let real: RealServer;
    let namespaces = 0;
    const statuses = new Map<string, number>();
    const onReal = async (sequence: Sequence): Promise<Recording> => {
      const recording = await play(sequence, real, `n${namespaces++}`);
      for (const outcome of recording.outcomes) {
        const status = outcome.kind === 'stream' ? 'streams' : String(outcome.status);
        statuses.set(status, (statuses.get(status) ?? 0) + 1);
      }
      return recording;
    };

    beforeAll(async () => {
      const { client } = controlPlane();
      await installReplicaTemplates(client);
      const groups = parse(readFileSync('deploy/crds/rolloutgroups.yaml', 'utf8')) as object;
      const definitions = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
      await client.create(definitions, groups);
      await client.until<Definition>(definitions, 'every kind established', (all) =>
        all.every(({ status }) => status?.conditions?.some(({ type, status }) => type === 'Established' && status === 'True')),
      );
      real = new RealServer(controlPlane());
      for (const kind of [replicaTemplates, rolloutGroups]) await warm(kind);
      return () => {
        real.close();
        const counts = [...statuses].sort().map(([status, count]) => `${status}: ${count}`);
        process.stderr.write(
          `conformance: seed ${seed}, ${namespaces} sequences on the real server, which answered with ${counts.join(', ')}\n`,
        );
      };
    });

    /** The server makes the storage of a custom kind when it is first asked for, and may make it anew: then streams end and lists are refused. */
    const warm = async (kind: Kind): Promise<void> => {
      const path = collectionOf(kind);
      const first: Operation = { method: 'POST', path, body: objectOf(kind, 'a') };
      const watched: Operation = { method: 'GET', path: `${path}?watch=1&resourceVersion=<rv start>`, isWatch: true };
      const last: Operation = { method: 'POST', path, body: objectOf(kind, 'b', { labels: { [lastLabel]: 'true' } }) };
      for (;;) {
        const { outcomes } = await onReal({ theme: 'warm-up', operations: [first, watched, last] });
        const stream = outcomes[1];
        if (stream?.kind === 'stream' && stream.end === 'whole') return;
      }
    };

    const check = async (count: number, differs: (sequence: Sequence, number: number) => Promise<Difference | undefined>, names: Names) => {
      const found: string[] = [];
      await inParallel(count, async (number) => {
        if (found.length >= shownCount) return;
        const sequence = generate(seed, number);
        const difference = await differs(sequence, number);
        if (difference === undefined || found.length >= shownCount) return;
        const small = await shrink(sequence, difference, (shorter) => differs(shorter, number));
        found.push(`seed ${seed}, sequence ${number}, ${tell(small.sequence, small.shown, names)}`);
      });
      expect(found.join('\n\n')).toBe('');
    };

    it('finds no difference between the real server and itself', async () => {
      await check(selfCount, async (sequence) => compare(await onReal(sequence), await onReal(sequence)), ['once', 'again']);
    }, 600_000);

    it('finds no difference between the model and the real server', async () => {
      const differs = async (sequence: Sequence, number: number): Promise<Difference | undefined> =>
        compare(await play(sequence, modelTarget(number), 'model'), await onReal(sequence));
      await check(sequenceCount, differs, ['model', 'real']);
    }, 600_000);
  },
  { isStill: true },
);
