import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { usualAgentNamespace } from '../../policies/objects/agent-deployment.ts';

it('is the namespace in which the manifests of the agent put its account', () => {
  const documents = parseAllDocuments(readFileSync('deploy/rbac.yaml', 'utf8')).map((document): unknown => document.toJS());
  const account = documents.find((one) => Reflect.get(Object(one), 'kind') === 'ServiceAccount');
  expect(account).toMatchObject({ metadata: { namespace: usualAgentNamespace } });
});
