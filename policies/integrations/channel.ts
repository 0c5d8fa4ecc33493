// A NotificationChannel as the agent uses it: its address, and the namespaces that may use it.
import type { NotificationChannel } from '../schema/kinds.ts';
import { defined } from '../values/defined.ts';

type ChannelSpec = NotificationChannel['spec'];

/** A key of a Secret in the agent's namespace. */
export type SecretKey = NonNullable<ChannelSpec['slack']>['token'];

interface Common {
  readonly name: string;
  /** Namespaces whose groups may use it. */
  readonly namespaces: readonly string[];
  /** Base of its API, or the address of the callback. */
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

/** Default base URLs of services, without a trailing slash. */
const usualBases = {
  slack: 'https://slack.com/api',
  github: 'https://api.github.com',
  gitlab: 'https://gitlab.com/api/v4',
} as const;

/** Returns the definition of a valid document; undefined if it names no service. */
export function channelOf({ metadata, spec }: NotificationChannel): ChannelDefinition | undefined {
  const common = { name: metadata.name, namespaces: spec.usableFrom.namespaces };
  const { slack, callback, github, gitlab } = spec;
  if (slack !== undefined) {
    const { token, channel } = slack;
    return { ...common, ...defined({ ca: slack.ca }), service: 'slack', url: base(slack.url, usualBases.slack), token, channel };
  }
  if (callback !== undefined) {
    const { url, signingKey } = callback;
    return { ...common, ...defined({ ca: callback.ca }), service: 'callback', url, ...defined({ signingKey }) };
  }
  if (github !== undefined) {
    const { token, repository } = github;
    return { ...common, ...defined({ ca: github.ca }), service: 'github', url: base(github.url, usualBases.github), token, repository };
  }
  if (gitlab === undefined) return undefined;
  const { token, project } = gitlab;
  return { ...common, ...defined({ ca: gitlab.ca }), service: 'gitlab', url: base(gitlab.url, usualBases.gitlab), token, project };
}

/** Returns the Secret keys that a channel reads. */
export function channelSecretKeys({ slack, callback, github, gitlab }: ChannelSpec): readonly SecretKey[] {
  const keys = [slack?.token, slack?.ca, callback?.signingKey, callback?.ca, github?.token, github?.ca, gitlab?.token, gitlab?.ca];
  return keys.flatMap((key) => key ?? []);
}

/** Reports whether the address is a loopback address, which needs no encryption. */
export function isLoopback(url: string): boolean {
  const host = /^https?:\/\/(\[[^\]]*\]|[^:/?#]*)/.exec(url)?.[1]?.toLowerCase() ?? '';
  return host === 'localhost' || host === '[::1]' || /^127(?:\.\d{1,3}){3}$/.test(host);
}

function base(given: string | undefined, usual: string): string {
  return (given ?? usual).replace(/\/+$/, '');
}
