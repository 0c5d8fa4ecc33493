// Converts NotificationChannels to the form that the agent uses, and lists the Secret keys of channels and metric sources.
import type { LoadedDocument } from '../load.ts';
import type { NotificationChannel } from '../schema/kinds.ts';
import { defined } from '../values/defined.ts';
import { sourceSecretKeys } from './metric-source.ts';

type ChannelSpec = NotificationChannel['spec'];

/** A key of a Secret in the agent's namespace. */
export type SecretKey = NonNullable<ChannelSpec['slack']>['token'];

interface Common {
  readonly name: string;
  /** The namespaces whose groups may use the channel. */
  readonly namespaces: readonly string[];
  /** The base URL of the API, or the address of the callback. */
  readonly url: string;
  readonly ca?: SecretKey;
}

export type ChannelDefinition = Common &
  (
    | { readonly service: 'slack'; readonly token: SecretKey; readonly channel: string }
    | { readonly service: 'callback'; readonly signingKey?: SecretKey }
    | { readonly service: 'github'; readonly token: SecretKey; readonly repository: string }
    | { readonly service: 'gitlab'; readonly token: SecretKey; readonly project: string }
  );

/** The default base URLs of services, without a trailing slash. */
const usualBases = {
  slack: 'https://slack.com/api',
  github: 'https://api.github.com',
  gitlab: 'https://gitlab.com/api/v4',
} as const;

/** Returns the definition of a valid document; undefined if it names no service. */
export function channelOf({ metadata, spec }: NotificationChannel): ChannelDefinition | undefined {
  const { slack, callback, github, gitlab } = spec;
  const common = { name: metadata.name, namespaces: spec.usableFrom.namespaces };
  const hosted = <S extends keyof typeof usualBases>(
    service: S,
    { url, ca }: { readonly url?: string | undefined; readonly ca?: SecretKey | undefined },
  ) => ({ ...common, service, url: (url ?? usualBases[service]).replace(/\/+$/, ''), ...defined({ ca }) }) as const;
  if (slack !== undefined) return { ...hosted('slack', slack), token: slack.token, channel: slack.channel };
  if (github !== undefined) return { ...hosted('github', github), token: github.token, repository: github.repository };
  if (gitlab !== undefined) return { ...hosted('gitlab', gitlab), token: gitlab.token, project: gitlab.project };
  if (callback === undefined) return undefined;
  const { url, signingKey, ca } = callback;
  return { ...common, service: 'callback', url, ...defined({ signingKey, ca }) };
}

export function channelSecretKeys({ slack, callback, github, gitlab }: ChannelSpec): readonly SecretKey[] {
  const keys = [slack?.token, slack?.ca, callback?.signingKey, callback?.ca, github?.token, github?.ca, gitlab?.token, gitlab?.ca];
  return keys.flatMap((key) => key ?? []);
}

/** Returns whether the address is a loopback address, which needs no encryption. */
export function isLoopback(url: string): boolean {
  const host = /^https?:\/\/(\[[^\]]*\]|[^:/?#]*)/.exec(url)?.[1]?.toLowerCase() ?? '';
  return host === 'localhost' || host === '[::1]' || /^127(?:\.\d{1,3}){3}$/.test(host);
}

/** Returns the Secret keys of a document, each once, in field order. Documents in other namespaces have no keys: the agent ignores them. */
export function secretKeysOf(document: LoadedDocument, agentNamespace: string): readonly SecretKey[] {
  if ((document.value.metadata.namespace ?? agentNamespace) !== agentNamespace) return [];
  const { kind, value } = document;
  const ofSource = kind === 'MetricSource' ? sourceSecretKeys(value.spec) : [];
  const ofChannel = kind === 'NotificationChannel' ? channelSecretKeys(value.spec) : [];
  return [...new Map([...ofSource, ...ofChannel].map((one) => [`${one.name}/${one.key}`, one])).values()];
}
