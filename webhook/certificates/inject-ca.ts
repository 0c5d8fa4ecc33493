// Adds our CA certificate to the webhook configurations with the injection label, and adds it again if another tool removes it.
import { type JsonPatchOperation, patchByOperations } from '../../cluster/request/write.ts';
import { foreignInjectors } from '../../install/object.ts';
import { getOrCreate } from '../../policies/values/map.ts';
import type { WebhookEnv } from '../env.ts';
import { certificatesIn, isSameBundle, isWithin } from './pair.ts';
import { isOvertaken, PatchPace, patchProblem } from './patch-pace.ts';
import type { CertificateSource } from './source.ts';
import {
  configurationResources,
  injectLabel,
  type WebhookConfiguration,
  type WebhookConfigurations,
  type WebhookEntry,
} from './webhook-configurations.ts';

const requestTimeoutMs = 10_000;
/** The number of patches in a row that are not followed by a delay. A tool such as Argo CD may remove the CA certificate repeatedly. */
const freePatches = 1;
/** After this number of patches in a row, a log line reports a conflict with another tool. */
const conflictLimit = 5;

interface InjectionOptions {
  readonly env: WebhookEnv;
  readonly configurations: WebhookConfigurations;
  /** `refresh` reads the bundle again and rejects if the read fails. */
  readonly source: Pick<CertificateSource, 'caBundle' | 'onChange'> & { readonly refresh: () => Promise<void> };
}

interface InjectionProblem {
  readonly kind: string;
  readonly name: string;
  readonly message: string;
}

interface PatchState {
  readonly pace: PatchPace;
  problem?: InjectionProblem;
}

/** Injects the CA certificate until `stop`. Never throws; retries failures without limit. */
export class Injection {
  readonly #options: InjectionOptions;
  readonly #states = new Map<string, PatchState>();
  readonly #skipped = new Set<string>();
  #isRunning = false;
  #isRequested = false;
  #isStopped = false;
  readonly #stopListening: readonly (() => void)[];
  #cancelTimer: () => void = () => undefined;

  constructor(options: InjectionOptions) {
    this.#options = options;
    this.#stopListening = [options.configurations, options.source].map(({ onChange }) => onChange(() => this.#run()));
    this.#run();
  }

  /** Checks all configurations, now or after the check under way. */
  #run(): void {
    this.#isRequested = true;
    if (!this.#isRunning) void this.#drain();
  }

  /** Stops writing; a patch under way finishes. */
  stop(): void {
    for (const stop of this.#stopListening) stop();
    this.#isStopped = true;
    this.#cancelTimer();
  }

  /** Returns the configurations to which the CA certificate could not be added, with the cause. */
  problems(): readonly InjectionProblem[] {
    return [...this.#states.values()].flatMap(({ problem }) => problem ?? []);
  }

  /**
   * Returns whether every configuration with the injection label has this CA certificate (PEM); false while configurations are unknown.
   * Undefined if the permission to read them is missing, or if a configuration without the label has only an older CA certificate of ours.
   */
  isTrusted(authority: string): boolean | undefined {
    const { configurations, source } = this.#options;
    if (configurations.isForbidden()) return undefined;
    if (!configurations.isSynced()) return false;
    const all = configurations.list();
    const trusts = ({ clientConfig }: WebhookEntry): boolean => isWithin(authority, bundleOf(clientConfig)) || namesNoServer(clientConfig);
    const ours = all.filter(isOurs);
    if (!ours.every(({ entries }) => entries.every(trusts))) return false;
    const bundle = source.caBundle() ?? '';
    const otherEntries = all.filter((one) => !isOurs(one)).flatMap(({ entries }) => entries);
    const isShared = (other: string): boolean => certificatesIn(other).some((one) => isWithin(one, bundle));
    const isUsedByOthers = otherEntries.some((entry) => isShared(bundleOf(entry.clientConfig)) && !trusts(entry));
    return isUsedByOthers ? undefined : true;
  }

  async #drain(): Promise<void> {
    this.#isRunning = true;
    while (this.#isRequested && !this.#isStopped) {
      this.#isRequested = false;
      await this.#check();
    }
    this.#isRunning = false;
  }

  async #check(): Promise<void> {
    const { configurations, source } = this.#options;
    const bundle = source.caBundle();
    if (bundle === undefined) return;
    // List the configurations before `refresh` reads the Secret. Another replica stores a newer bundle there before it patches
    // configurations, so `refresh` finds that bundle. If that replica patches after our list, the `test` operations of our patch fail.
    const lacking = this.#lacking(configurations.list(), bundle);
    const nowMs = this.#nowMs();
    const due = lacking.filter((one) => this.#stateOf(one).pace.dueMs <= nowMs);
    if (due.length > 0 && (await this.#isRefreshed(due))) {
      for (const one of due) await this.#inject(one, source.caBundle() ?? bundle);
    }
    this.#planNext(lacking);
  }

  /** Returns the configurations that need a patch. Skips a configuration whose last patch the watch has not delivered yet. */
  #lacking(all: readonly WebhookConfiguration[], bundle: string): readonly WebhookConfiguration[] {
    this.#forgetDeleted(all);
    return all.filter((one) => {
      this.#logIfSkipped(one);
      if (!isOurs(one)) return false;
      const isLacking = one.entries.some((entry) => isLackingIn(entry, bundle));
      const state = this.#states.get(keyOf(one));
      if (!isLacking && state !== undefined) delete state.problem;
      return isLacking && state?.pace.isPatched(one.resourceVersion) !== true;
    });
  }

  async #isRefreshed(due: readonly WebhookConfiguration[]): Promise<boolean> {
    try {
      await this.#options.source.refresh();
      return !this.#isStopped;
    } catch (error) {
      for (const one of due) this.#noteFailure(one, error, 'the CA certificate is unknown');
      return false;
    }
  }

  async #inject(configuration: WebhookConfiguration, bundle: string): Promise<void> {
    const operations = configuration.entries.flatMap((entry, index) =>
      isLackingIn(entry, bundle) ? operationsOf(entry, index, bundle) : [],
    );
    if (operations.length === 0 || this.#isStopped) return;
    const { env } = this.#options;
    const { kind, name, uid, resourceVersion } = configuration;
    const state = this.#stateOf(configuration);
    try {
      const options = { operations, timeoutMs: requestTimeoutMs, site: 'certificates.inject' };
      await patchByOperations(env, configurationResources[kind], { name, uid }, options);
    } catch (error) {
      this.#noteFailure(configuration, error, 'the CA certificate could not be written');
      return;
    }
    const patchCount = state.pace.succeeded(resourceVersion, this.#nowMs());
    delete state.problem;
    env.log.info('added the CA certificate to a webhook configuration', { kind, name });
    if (patchCount !== conflictLimit) return;
    const advice = 'configure that tool to ignore webhooks[].clientConfig.caBundle';
    env.log.warn('another tool repeatedly removes the CA certificate from a webhook configuration', { kind, name, advice });
  }

  #noteFailure(configuration: WebhookConfiguration, error: unknown, what: string): void {
    const { env } = this.#options;
    const { kind, name } = configuration;
    const state = this.#stateOf(configuration);
    state.pace.failed(error, this.#nowMs());
    const message = `${what}: ${patchProblem(error, configurationResources[kind])}`;
    if (!isOvertaken(error) && state.problem?.message !== message)
      env.log.warn('a webhook configuration lacks our CA certificate', { kind, name, message });
    state.problem = { kind, name, message };
  }

  #planNext(lacking: readonly WebhookConfiguration[]): void {
    this.#cancelTimer();
    const { env } = this.#options;
    const waiting = lacking.map((one) => this.#stateOf(one).pace.dueMs).filter((dueMs) => dueMs > this.#nowMs());
    if (waiting.length === 0 || this.#isStopped) return;
    const dueMs = Math.min(...waiting);
    this.#cancelTimer = env.timers.after(dueMs - this.#nowMs(), () => this.#run());
  }

  #forgetDeleted(all: readonly WebhookConfiguration[]): void {
    const keys = new Set(all.map(keyOf));
    for (const key of this.#states.keys()) if (!keys.has(key)) this.#states.delete(key);
    for (const key of this.#skipped) if (!keys.has(key)) this.#skipped.delete(key);
  }

  #logIfSkipped(configuration: WebhookConfiguration): void {
    const annotation = foreignInjectors.find((key) => key in configuration.annotations);
    const key = keyOf(configuration);
    if (annotation === undefined || configuration.labels[injectLabel] !== 'true' || this.#skipped.has(key)) return;
    this.#skipped.add(key);
    const { kind, name } = configuration;
    this.#options.env.log.info('left the CA certificate of a webhook configuration to another tool', { kind, name, annotation });
  }

  #stateOf(configuration: WebhookConfiguration): PatchState {
    return getOrCreate(this.#states, keyOf(configuration), () => ({ pace: new PatchPace(this.#options.env.random, freePatches) }));
  }

  #nowMs(): number {
    return this.#options.env.clock.monotonicMs();
  }
}

function isOurs({ labels, annotations }: WebhookConfiguration): boolean {
  return labels[injectLabel] === 'true' && !foreignInjectors.some((key) => key in annotations);
}

function isLackingIn({ clientConfig }: WebhookEntry, bundle: string): boolean {
  return !namesNoServer(clientConfig) && !isSameBundle(bundle, bundleOf(clientConfig));
}

function namesNoServer(clientConfig: WebhookEntry['clientConfig']): boolean {
  return Object.keys(clientConfig).length === 0;
}

/** Returns a patch that adds our bundle. The patch fails if the entry was moved or its `clientConfig` changed. */
function operationsOf({ name, clientConfig }: WebhookEntry, index: number, bundle: string): readonly JsonPatchOperation[] {
  const path = `/webhooks/${index}`;
  return [
    { op: 'test', path: `${path}/name`, value: name },
    { op: 'test', path: `${path}/clientConfig`, value: clientConfig },
    { op: 'add', path: `${path}/clientConfig/caBundle`, value: Buffer.from(bundle, 'utf8').toString('base64') },
  ];
}

function bundleOf({ caBundle }: WebhookEntry['clientConfig']): string {
  return typeof caBundle === 'string' ? Buffer.from(caBundle, 'base64').toString('utf8') : '';
}

function keyOf({ kind, name, uid }: WebhookConfiguration): string {
  return `${kind} ${name} ${uid}`;
}
