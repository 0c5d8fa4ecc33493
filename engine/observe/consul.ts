// Reads an answer of the Consul health API as a reading of a gate.
import { formatDuration } from '../../policies/duration.ts';
import type { GateReading } from '../snapshot.ts';
import { fieldAt } from './raw.ts';

/** An answer of `/v1/health/service/NAME` as it came. */
export interface ConsulAnswer {
  readonly status: number;
  readonly body: string;
  /** Lower-case names. */
  readonly headers?: Readonly<Record<string, string>>;
}

interface ReadConsulOptions {
  /** When the question was asked, in milliseconds since 1970; the reading's own instant. */
  readonly atMs: number;
  /** Counted instances: passing or failing. */
  readonly counts: 'passing' | 'notPassing';
  /** For how long the agent that answers may not have heard of the leader of its datacenter, in milliseconds. */
  readonly toleranceMs: number;
}

/**
 * Reads an answer. An instance passes when each of its checks does, those of its node included; maintenance is a check that does not. A service
 * without instances is no data: it may be misspelt, or gone. Anything that may be old or only a part is an error: without a leader, without
 * contact to it for too long, or with instances that the token may not see.
 */
export function readConsul(answer: ConsulAnswer, { atMs, counts, toleranceMs }: ReadConsulOptions): GateReading {
  const failed = (message: string): GateReading => ({ atMs, result: 'error', message });
  const { status, headers = {} } = answer;
  if (status === 401 || status === 403) return failed(`the provider does not accept the credentials (HTTP ${status})`);
  if (status !== 200) return failed(`the provider answered HTTP ${status}`);
  if (headers['x-consul-knownleader'] === 'false') return failed('the datacenter has no leader, so the answer may be old');
  if (headers['x-consul-results-filtered-by-acls'] === 'true') return failed('the token may not see every instance');
  const silenceMs = Number(headers['x-consul-lastcontact'] ?? 0);
  if (!Number.isFinite(silenceMs)) return failed('the answer does not say how old it is');
  if (silenceMs > toleranceMs) return failed(`the answer is ${formatDuration(Math.round(silenceMs / 1000) * 1000)} old`);
  const instances = instancesOf(answer.body);
  if (typeof instances === 'string') return failed(instances);
  if (instances.length === 0) return { atMs, result: 'noData' };
  const passing = instances.filter((statuses) => statuses.every((one) => one === 'passing')).length;
  return { atMs, result: 'value', value: counts === 'passing' ? passing : instances.length - passing };
}

/** The statuses of the checks of each instance, or why they are not known. */
function instancesOf(body: string): readonly (readonly string[])[] | string {
  let entries: unknown;
  try {
    entries = JSON.parse(body);
  } catch {
    return 'the answer is not JSON';
  }
  if (!Array.isArray(entries)) return 'the answer is not a list of instances';
  const instances: string[][] = [];
  for (const entry of entries as readonly unknown[]) {
    const checks = fieldAt(entry, ['Checks']);
    if (!Array.isArray(checks)) return 'an instance has no checks';
    const statuses = (checks as readonly unknown[]).map((check) => fieldAt(check, ['Status']));
    if (!statuses.every((status) => typeof status === 'string')) return 'a check has no status';
    instances.push(statuses);
  }
  return instances;
}
