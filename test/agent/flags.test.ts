import { describe, expect, it } from 'vitest';
import { parseFlags, usageText } from '../../agent/flags/command-line.ts';
import { type FlagValues, flagSections, flagSpecs } from '../../agent/flags/flags.ts';
import { settingsOf } from '../../agent/flags/settings.ts';
import { flagTables } from '../../scripts/generated/pages.ts';

function valuesOf(...words: readonly string[]): FlagValues {
  const parsed = parseFlags(words);
  if (parsed.kind !== 'values') throw new Error(`not parsed: ${JSON.stringify(parsed)}`);
  return parsed.values;
}

const settings = (...words: readonly string[]) => settingsOf(valuesOf('-kubernetes.namespace=mimir', ...words), { identity: 'host_1' });

/** One value of each kind other than any default, as typed and as read. */
const samples = {
  text: ['x y', 'x y'],
  list: ['a, b,,c', ['a', 'b', 'c']],
  boolean: ['T', true],
  integer: ['17', 17],
  number: ['0.5', 0.5],
  duration: ['1m30s', 90_000],
  prometheusDuration: ['30d', 30 * 86_400_000],
} as const;

describe('the flags of grafana/rollout-operator', () => {
  it('have the names and defaults of the original, except that requests have no limit', () => {
    const sections = flagSections.filter(([title]) => title !== 'Flags of this agent');
    const original = sections.flatMap(([, flags]) => flags.map((flag) => [flag.name, flag.default ?? ''] as const));
    expect(new Map([...original].sort())).toEqual(
      new Map([
        ['kubernetes.api-url', ''],
        ['kubernetes.client-burst', '10'],
        ['kubernetes.client-qps', '0'],
        ['kubernetes.client-timeout', '5m'],
        ['kubernetes.cluster-domain', 'cluster.local.'],
        ['kubernetes.config-file', ''],
        ['kubernetes.namespace', ''],
        ['log.format', 'logfmt'],
        ['log.level', 'debug'],
        ['pods.client-timeout', '5s'],
        ['reconcile.interval', '5s'],
        ['server-tls.cert-file', ''],
        ['server-tls.enabled', 'false'],
        ['server-tls.key-file', ''],
        ['server-tls.port', '8443'],
        ['server-tls.request-timeout', '10s'],
        ['server-tls.self-signed-cert.dns-name', ''],
        ['server-tls.self-signed-cert.enabled', 'true'],
        ['server-tls.self-signed-cert.expiration', '1y'],
        ['server-tls.self-signed-cert.org', 'Grafana Labs'],
        ['server-tls.self-signed-cert.secret-name', 'rollout-operator-self-signed-certificate'],
        ['server.cluster-validation.http.enabled', 'false'],
        ['server.cluster-validation.http.excluded-paths', ''],
        ['server.cluster-validation.http.excluded-user-agents', ''],
        ['server.cluster-validation.http.soft-validation', 'false'],
        ['server.port', '8001'],
        ['use-zone-tracker', 'false'],
        ['webhooks.update-ca-bundle', 'true'],
        ['zone-tracker.config-map-name', 'rollout-operator-zone-tracker'],
        ['zpdb.pod-ready-annotation-patch-timeout', '5s'],
      ]),
    );
  });
});

describe.each(flagSpecs.map((flag) => [flag.name, flag] as const))('-%s', (name, flag) => {
  const [typed, read] = samples[flag.kind];
  const key = name as keyof FlagValues;

  it('accepts one dash or two, and its value after = or as the next argument', () => {
    const forms = [[`-${name}=${typed}`], [`--${name}=${typed}`]];
    if (flag.kind !== 'boolean') forms.push([`-${name}`, typed], [`--${name}`, typed]);
    for (const alias of flag.aliases ?? []) forms.push([`-${alias}=${typed}`]);
    for (const form of forms) expect(valuesOf(...form)[key]).toEqual(read);
  });

  it('accepts its default as a value, and the last of several values counts', () => {
    expect(valuesOf()[key]).toEqual(valuesOf(`-${name}=${flag.default ?? ''}`)[key]);
    expect(valuesOf(`-${name}=${flag.default ?? ''}`, `--${name}=${typed}`)[key]).toEqual(read);
  });

  it('is in the usage and in the documentation', () => {
    expect(usageText()).toContain(`  -${name}`);
    expect(flagTables().join('\n')).toContain(`| \`-${name}\` |`);
  });
});

describe('parseFlags', () => {
  it('reads a boolean without a value as true, and does not read the next argument', () => {
    expect(valuesOf('-use-zone-tracker')['use-zone-tracker']).toBe(true);
    expect(parseFlags(['-use-zone-tracker', 'false'])).toEqual({ kind: 'wrong', message: 'unexpected argument: false' });
  });

  it('keeps the text after the first = unchanged', () => {
    expect(valuesOf('-identity=a=b')['identity']).toBe('a=b');
    expect(valuesOf('-identity=')['identity']).toBe('');
    expect(valuesOf('-kubernetes.client-qps', '-1')['kubernetes.client-qps']).toBe(-1);
  });

  it.each([
    [['-no.such'], 'flag provided but not defined: -no.such'],
    [['--kubernetes.namespaces=x'], 'flag provided but not defined: -kubernetes.namespaces (did you mean -kubernetes.namespace?)'],
    [['-server.port'], 'flag needs an argument: -server.port'],
    [['-server.port=x'], 'invalid value "x" for flag -server.port: a whole number is expected'],
    [['-kubernetes.client-qps=fast'], 'invalid value "fast" for flag -kubernetes.client-qps: a number is expected'],
    [['-reconcile.interval=5'], 'invalid value "5" for flag -reconcile.interval: a duration such as 90s or 5m is expected'],
    [['-reconcile.interval=1d'], 'invalid value "1d" for flag -reconcile.interval: a duration such as 90s or 5m is expected'],
    [
      ['-server-tls.self-signed-cert.expiration=soon'],
      'invalid value "soon" for flag -server-tls.self-signed-cert.expiration: a duration such as 12h, 30d or 1y is expected',
    ],
    [['-server-tls.enabled=yes'], 'invalid value "yes" for flag -server-tls.enabled: true or false is expected'],
    [['---server.port=1'], 'bad flag syntax: ---server.port=1'],
    [['-=x'], 'bad flag syntax: -=x'],
    [['word'], 'unexpected argument: word'],
    [['-'], 'unexpected argument: -'],
  ])('rejects %j', (words, message) => {
    expect(parseFlags(words)).toEqual({ kind: 'wrong', message });
  });

  it('accepts help and version in both forms', () => {
    for (const word of ['-h', '--h', '-help', '--help']) expect(parseFlags([word])).toEqual({ kind: 'help' });
    for (const word of ['-version', '--version']) expect(parseFlags([word])).toEqual({ kind: 'version' });
  });
});

describe('settingsOf', () => {
  it('has the defaults of the original, watches its own namespace and acts under a Lease when it may', () => {
    expect(settings()).toEqual({
      agent: {
        namespaces: ['mimir'],
        agentNamespace: 'mimir',
        identity: 'host_1',
        clusterDomain: 'cluster.local.',
        policySources: ['directory', 'objects', 'adopted'],
        podTimeoutMs: 5000,
        kubernetesTimeoutMs: 300_000,
        retryMs: 5000,
        lease: { mode: 'auto', name: 'rollout-group-agent', durationMs: 15_000, renewDeadlineMs: 10_000, retryPeriodMs: 2000 },
        publishEveryMs: 5000,
      },
      log: { format: 'logfmt', level: 'debug' },
      server: { port: 8001 },
      kubernetes: {},
      readyPatchTimeoutMs: 5000,
      runsAgent: true,
    });
  });

  it('reads every flag', () => {
    expect(
      settings(
        ...['-namespaces=loki,mimir,loki', '-identity=me', '-policies=/etc/policies', '-policies.reread=1m', '-policy-sources=adopted'],
        ...['-leader-election=required', '-lease.name=l', '-lease.duration=30s', '-lease.renew-deadline=20s', '-lease.retry-period=500ms'],
        ...['-publish.every=0', '-server.address=127.0.0.1', '-server.port=0', '-log.level=warn'],
        ...['-kubernetes.api-url=https://x', '-kubernetes.config-file=/c', '-pods.client-timeout=0', '-kubernetes.client-timeout=0'],
        ...['-log.format=json', '-reconcile.interval=0', '-kubernetes.cluster-domain=local', '-intents.stamped=true'],
      ),
    ).toEqual({
      agent: {
        namespaces: ['loki', 'mimir'],
        agentNamespace: 'mimir',
        identity: 'me',
        clusterDomain: 'local',
        policySources: ['adopted'],
        areIntentsStamped: true,
        podTimeoutMs: 3_600_000,
        kubernetesTimeoutMs: 3_600_000,
        retryMs: 10,
        lease: { mode: 'required', name: 'l', durationMs: 30_000, renewDeadlineMs: 20_000, retryPeriodMs: 500 },
        publishEveryMs: 0,
      },
      log: { format: 'json', level: 'warn' },
      server: { port: 0, address: '127.0.0.1' },
      kubernetes: { apiUrl: 'https://x', configFile: '/c' },
      policyDirectory: { path: '/etc/policies', rereadMs: 60_000 },
      readyPatchTimeoutMs: 5000,
      runsAgent: true,
    });
  });

  it('serves the webhooks as the original does, with a separate certificate', () => {
    expect(settings('-server-tls.enabled=true')).toMatchObject({
      runsAgent: true,
      webhook: {
        port: 8443,
        requestTimeoutMs: 10_000,
        drainMs: 10_000,
        certificate: {
          kind: 'self-signed',
          secretName: 'rollout-operator-self-signed-certificate',
          dnsName: 'rollout-operator.mimir.svc',
          organization: 'Grafana Labs',
          lifetimeMs: 31_536_000_000,
          injectsAuthority: true,
        },
        isPreparedElsewhere: false,
      },
    });
  });

  it('reads every flag of the webhooks', () => {
    const said = settings(
      ...['-run=webhook', '-server-tls.enabled=true', '-server-tls.port=0', '-server-tls.request-timeout=5s', '-server-tls.drain=0'],
      ...['-server-tls.self-signed-cert.enabled=false', '-server-tls.cert-file=/c', '-server-tls.key-file=/k', '-server-tls.ca-file=/a'],
      ...[
        '-server-tls.client-ca-file=/d',
        '-server.address=127.0.0.1',
        '-use-zone-tracker=true',
        '-prepare-downscale.registered=true',
        '-zpdb.pod-ready-annotation-patch-timeout=1s',
      ],
    );
    expect(said).toMatchObject({ runsAgent: false, readyPatchTimeoutMs: 1000 });
    expect('refused' in said ? said : said.webhook).toEqual({
      port: 0,
      address: '127.0.0.1',
      requestTimeoutMs: 5000,
      drainMs: 0,
      certificate: { kind: 'files', certFile: '/c', keyFile: '/k', caFile: '/a' },
      clientCaFile: '/d',
      zoneTracker: 'rollout-operator-zone-tracker',
      isPreparedElsewhere: true,
    });
  });

  it('starts no webhook in a process that is only an agent', () => {
    expect(settings('-run=agent', '-server-tls.enabled=true')).not.toHaveProperty('webhook');
  });

  it('watches the whole cluster with *', () => {
    expect(settings('-namespaces=*')).toMatchObject({ agent: { namespaces: undefined, agentNamespace: 'mimir' } });
  });

  it('exempts all webhooks from the validation of the cluster if no path is named', () => {
    expect(settings('-server.cluster-validation.http.enabled')).toMatchObject({
      server: {
        clusterValidation: {
          label: 'mimir',
          isSoft: false,
          excludedPaths: ['admission/'],
          excludedUserAgents: [],
        },
      },
    });
    expect(
      settings(
        '-server.cluster-validation.http.enabled',
        '-server.cluster-validation.http.exclude-paths=x',
        '-server.cluster-validation.http.excluded-user-agents=^kube-probe',
      ),
    ).toMatchObject({ server: { clusterValidation: { excludedPaths: ['x'], excludedUserAgents: [/^kube-probe/] } } });
  });

  /** What is wrong, from the check that comes first to the one that comes last. */
  const failures: readonly (readonly [string, readonly string[]])[] = [
    ['cluster-domain', ['-kubernetes.cluster-domain=']],
    ['-kubernetes.namespace', ['-kubernetes.namespace=']],
    ['-kubernetes.api-url and -kubernetes.config-file', ['-kubernetes.api-url=x']],
    ['-zone-tracker.config-map-name', ['-use-zone-tracker', '-zone-tracker.config-map-name=']],
    ['-kubernetes.client-burst', ['-kubernetes.client-qps=5', '-kubernetes.client-burst=0']],
    ['-server-tls.request-timeout', ['-server-tls.request-timeout=0']],
    ['-zpdb.pod-ready-annotation-patch-timeout', ['-zpdb.pod-ready-annotation-patch-timeout=0s']],
    ['soft-validation', ['-server.cluster-validation.http.soft-validation']],
    ['regular expression', ['-server.cluster-validation.http.excluded-user-agents=(']],
    ['-log.format', ['-log.format=xml']],
    ['-log.level', ['-log.level=trace']],
    ['-policy-sources', ['-policy-sources=git']],
    ['-leader-election', ['-leader-election=on']],
    ['-lease.renew-deadline', ['-lease.retry-period=10s']],
    ['-lease.duration', ['-lease.duration=9s']],
    ['-lease.name', ['-lease.name=']],
    ['-publish.every', ['-publish.every=-1s']],
    ['-policies.reread', ['-policies.reread=0']],
    ['-namespaces', ['-namespaces=a/b']],
    ['-run', ['-run=everything']],
    ['-server-tls.drain', ['-server-tls.drain=-1s']],
    ['-server-tls.cert-file', ['-server-tls.enabled=true', '-server-tls.self-signed-cert.enabled=false']],
    ['-server-tls.self-signed-cert.expiration', ['-server-tls.enabled=true', '-server-tls.self-signed-cert.expiration=1s']],
  ];

  it.each(failures)('rejects %s alone', (named, words) => {
    expect(settings(...words)).toEqual({ refused: expect.stringContaining(named) });
  });

  it('rejects a process that serves only webhooks without a webhook', () => {
    expect(settings('-run=webhook')).toEqual({ refused: expect.stringContaining('needs -server-tls.enabled=true') });
  });

  it('names the first error, in the order of the original', () => {
    for (const [index, [named]] of failures.entries()) {
      const words = failures.slice(index).flatMap(([, each]) => each);
      expect(settings(...words)).toEqual({ refused: expect.stringContaining(named) });
    }
  });

  it.each([
    [[], {}],
    [['-kubernetes.client-burst=0'], {}],
    [['-kubernetes.client-burst=50'], {}],
    [['-kubernetes.client-qps=-1', '-kubernetes.client-burst=50'], {}],
    [['-kubernetes.client-qps=20'], { rateLimit: { qps: 20, burst: 10 } }],
    [['-kubernetes.client-qps=0.5', '-kubernetes.client-burst=3'], { rateLimit: { qps: 0.5, burst: 3 } }],
  ])('limits requests to the API server only if a rate is set: %j', (words, kubernetes) => {
    expect(settings(...words)).toHaveProperty('kubernetes', kubernetes);
  });
});
