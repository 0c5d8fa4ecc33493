// Writes the files of `review --out`: the annotations by which the agent compares a rollout with the plan that a review approved.
import { mkdirSync, writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { stringify } from 'yaml';
import { contextOf } from '../../engine/context.ts';
import { approvedPlanAnnotation } from '../../engine/observe/objects.ts';
import type { PlanInput } from '../../engine/plan/plan.ts';
import { approvedPlans } from '../../engine/run/approved-plan.ts';
import { emptySnapshot } from '../../engine/snapshot.ts';
import { unwritable } from '../failure.ts';

/** Returns one StatefulSet document for each member of a group: its name, and the annotation. Groups without a change keep their annotation. */
export function approvedDocuments(input: PlanInput): readonly object[] {
  const { policies, exceptions, agentNamespace } = input;
  const groups = input.desiredGroups ?? input.groups;
  const snapshot = {
    ...emptySnapshot(input.nowMs),
    groups,
    policies,
    exceptions,
    ...(agentNamespace === undefined ? {} : { agentNamespace }),
  };
  return groups
    .flatMap((group) => [...approvedPlans(contextOf(snapshot, group), input.written ?? input.desired)])
    .map(([key, text]) => {
      const [namespace, name] = key.split('/');
      return { apiVersion: 'apps/v1', kind: 'StatefulSet', metadata: { name, namespace, annotations: { [approvedPlanAnnotation]: text } } };
    });
}

/** Writes `ENVIRONMENT.yaml` into the directory, and creates the directory. A file without documents shows that nothing rolls. */
export function writeApprovedPlans(directory: string, environment: string, documents: readonly object[], cwd: string): void {
  const path = resolve(cwd, directory, `${environment}.yaml`);
  try {
    mkdirSync(resolve(cwd, directory), { recursive: true });
    writeFileSync(path, documents.map((document) => stringify(document, { lineWidth: 0 })).join('---\n'));
  } catch (error) {
    throw unwritable(path, error);
  }
}
