// Watches the webhook configurations of an installation, for `inject-ca.ts`, `narrow.ts` and `registration.ts`.
import { asJsonObject, type JsonObject } from '../../cluster/request/json.ts';
import { type KubernetesObject, type Resource, resources } from '../../cluster/request/resource.ts';
import { Reflector } from '../../cluster/watch/reflector.ts';
import { isForOthers } from '../../install/narrowing.ts';
import type { WebhookEnv } from '../env.ts';
import { Listeners } from './source.ts';

const namespaceLabel = 'grafana.com/namespace';
/** The injection label: its value `true` requests our CA certificate in every entry. */
export const injectLabel = 'grafana.com/inject-rollout-operator-ca';

/** If a watch ends and the last list is older than this, a new list follows. grafana/rollout-operator lists at this interval. */
const relistMs = 300_000;

export type ConfigurationKind = 'ValidatingWebhook' | 'MutatingWebhook';

export interface WebhookEntry {
  readonly name: string;
  /** `Fail` if absent. */
  readonly failurePolicy: string;
  /** As stored in the object. */
  readonly clientConfig: JsonObject;
}

export interface WebhookConfiguration {
  readonly kind: ConfigurationKind;
  readonly name: string;
  readonly uid: string;
  readonly resourceVersion: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly entries: readonly WebhookEntry[];
  readonly webhooks: readonly JsonObject[];
}

export const configurationResources: Readonly<Record<ConfigurationKind, Resource>> = {
  ValidatingWebhook: {
    ...resources.mutatingWebhookConfigurations,
    plural: 'validatingwebhookconfigurations',
    kind: 'ValidatingWebhookConfiguration',
  },
  MutatingWebhook: resources.mutatingWebhookConfigurations,
};

const kinds: readonly ConfigurationKind[] = ['ValidatingWebhook', 'MutatingWebhook'];

/** The configurations of both kinds with our namespace in the label. */
export interface WebhookConfigurations {
  /** Returns the configurations, sorted by name within each kind. While a kind cannot be read, its last known configurations stay. */
  readonly list: () => readonly WebhookConfiguration[];
  /** Returns whether each kind was listed and no request for it fails now. */
  readonly isSynced: () => boolean;
  /** Returns why a kind cannot be read; undefined if no read fails. */
  readonly problem: () => string | undefined;
  /** Returns whether the permission to read a kind is missing. Then waiting does not help. */
  readonly isForbidden: () => boolean;
  /** Calls the listener after each change. Returns a function that removes the listener. */
  readonly onChange: (listener: () => void) => () => void;
  readonly stop: () => void;
}

/** Starts the watches and never throws. */
export function watchConfigurations(env: WebhookEnv, namespace: string): WebhookConfigurations {
  const listeners = new Listeners();
  const changed = (): void => {
    const failure = listeners.call();
    if (failure !== undefined) env.log.error('a listener of the webhook configurations failed', { error: String(failure) });
  };
  const reflectors = kinds.map(
    (kind): Reflector<WebhookConfiguration> =>
      new Reflector<WebhookConfiguration>({
        env,
        relistMs,
        resource: configurationResources[kind],
        labelSelector: `${namespaceLabel}=${namespace}`,
        site: `certificates.${kind}`,
        project: (object) => configurationOf(kind, object),
        onChange: changed,
        onState: (state) => {
          const problem = state.kind === 'failing' ? state.message : undefined;
          if (problem !== undefined) env.log.warn('webhook configurations cannot be read', { kind, problem });
          changed();
        },
      }),
  );
  const states = () => reflectors.map((reflector) => reflector.state());
  return {
    list: () => reflectors.flatMap(({ store }) => [...store.list()].sort((a, b) => (a.name < b.name ? -1 : 1))),
    isSynced: () => states().every((state) => state.kind === 'synced'),
    problem: () => {
      const failing = states().find((state) => state.kind === 'failing');
      return failing?.kind === 'failing' ? failing.message : undefined;
    },
    isForbidden: () => states().some((state) => state.kind === 'failing' && state.reason === 'forbidden'),
    onChange: listeners.add,
    stop: () => reflectors.forEach((reflector) => void reflector.stop()),
  };
}

function configurationOf(kind: ConfigurationKind, { metadata, webhooks }: KubernetesObject): WebhookConfiguration {
  const entries = Array.isArray(webhooks) ? webhooks : [];
  return {
    kind,
    name: metadata.name,
    uid: metadata.uid ?? '',
    resourceVersion: metadata.resourceVersion ?? '',
    labels: metadata.labels ?? {},
    annotations: metadata.annotations ?? {},
    webhooks: entries.map(asJsonObject),
    entries: entries.map(asJsonObject).map(({ name, failurePolicy, clientConfig }) => ({
      name: typeof name === 'string' ? name : '',
      failurePolicy: typeof failurePolicy === 'string' ? failurePolicy : 'Fail',
      clientConfig: asJsonObject(clientConfig),
    })),
  };
}

/** One series of the gauge `kube_validating_webhook_failure_policy`. */
export interface FailurePolicySample {
  readonly type: ConfigurationKind;
  /** Name of the entry, without the name of the configuration. */
  readonly webhook: string;
  readonly policy: 'Fail' | 'Ignore';
  readonly value: 0 | 1;
}

/**
 * Returns a series for each policy, entry name and kind: 1 for the policy in force. `Ignore` wins if entries with the same name differ.
 * Entries for StatefulSets outside of groups have no series.
 */
export function failurePolicies(configurations: readonly WebhookConfiguration[]): readonly FailurePolicySample[] {
  const byEntry = new Map<string, { readonly type: ConfigurationKind; readonly webhook: string; isIgnored: boolean }>();
  for (const { kind, entries } of configurations) {
    for (const { name, failurePolicy } of entries) {
      // The alert of grafana/rollout-operator would report `pod-eviction-of-others`, which protects nothing.
      if (isForOthers(name)) continue;
      const key = `${kind} ${name}`;
      const known = byEntry.get(key) ?? { type: kind, webhook: name, isIgnored: false };
      byEntry.set(key, { ...known, isIgnored: known.isIgnored || failurePolicy === 'Ignore' });
    }
  }
  return [...byEntry.values()].flatMap(({ type, webhook, isIgnored }): readonly FailurePolicySample[] => [
    { type, webhook, policy: 'Fail', value: isIgnored ? 0 : 1 },
    { type, webhook, policy: 'Ignore', value: isIgnored ? 1 : 0 },
  ]);
}
