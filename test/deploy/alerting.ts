// A real Prometheus that scrapes agents and the API server, and evaluates the alerts in seconds.
import { writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import type { ControlPlane } from '../control-plane/control-plane.ts';
import { createPrometheus, findPrometheus, login } from '../control-plane/prometheus.ts';

export const prometheus = findPrometheus();

/** A process of the agent, as the ServiceMonitor finds it. */
export interface Target {
  readonly pod: string;
  /** The port of /metrics. */
  readonly port: number;
}

interface Alert {
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly state: 'pending' | 'firing';
}

export interface Alerting {
  /** Asks the API of Prometheus. Throws the error of the answer. */
  readonly ask: <Answer>(path: string, parameters?: Readonly<Record<string, string>>) => Promise<Answer>;
  /** Returns the alerts that fire. */
  readonly firing: () => Promise<readonly Alert[]>;
  readonly close: () => Promise<void>;
}

/** Starts Prometheus with the text of a rule file. Throws without an executable. */
export async function startAlerting(cp: ControlPlane, rules: string, agents: readonly Target[]): Promise<Alerting> {
  if (prometheus === undefined) throw new Error('there is no executable prometheus: install it, or name it in PROMETHEUS_BINARY');
  const { authority, folder } = cp;
  const path = join(folder, 'alerts.yaml');
  writeFileSync(path, inSeconds(rules));
  const server = await createPrometheus(prometheus, authority.issueForServer(), { scrapes: scrapesOf(cp, agents), rules: [path] });
  await server.start();
  const ask = async <Answer>(path: string, parameters: Readonly<Record<string, string>> = {}): Promise<Answer> => {
    const url = `${server.url()}/api/v1/${path}?${new URLSearchParams(parameters)}`;
    const auth = `${login.user}:${login.password}`;
    const body = await new Promise<string>((settle, fail) => {
      request(url, { ca: authority.certificate, auth }, (response) => text(response).then(settle, fail))
        .on('error', fail)
        .end();
    });
    const { status, data, error } = JSON.parse(body);
    if (status !== 'success') throw new Error(`${path} ${JSON.stringify(parameters)}: ${error}`);
    return data;
  };
  const firing = async (): Promise<readonly Alert[]> => {
    const { alerts } = await ask<{ readonly alerts: readonly Alert[] }>('alerts');
    return alerts.filter(({ state }) => state === 'firing');
  };
  return { ask, firing, close: () => server.close() };
}

/** Returns the rules with 10 seconds for each number of minutes, and 15 seconds for half an hour without progress. */
function inSeconds(rules: string): string {
  return rules.replace(/\b(for: |offset |\[)\d+m/g, (_, before) => `${before}10s`).replace(/> 1800/g, '> 15');
}

/** Returns the scrapes of the agents, as docs/runbooks.md describes them, and of the API server. */
function scrapesOf({ url, authority, identities, folder }: ControlPlane, agents: readonly Target[]): readonly object[] {
  const file = (name: string, content: string): string => {
    writeFileSync(join(folder, name), content, { mode: 0o600 });
    return join(folder, name);
  };
  const tls_config = {
    ca_file: file('scrape-ca.crt', authority.certificate),
    cert_file: file('scrape.crt', identities.admin.certificate),
    key_file: file('scrape.key', identities.admin.privateKey),
  };
  const targets = agents.map(({ pod, port }) => ({ targets: [`127.0.0.1:${port}`], labels: { namespace: 'rollout-group', pod } }));
  return [
    { job_name: 'agent', honor_labels: true, static_configs: targets },
    {
      job_name: 'apiserver',
      scheme: 'https',
      tls_config,
      static_configs: [{ targets: [new URL(url).host] }],
      scrape_interval: '2s',
      scrape_timeout: '2s',
    },
  ];
}
