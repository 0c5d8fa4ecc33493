// What a row of the table says: what happens in the middle of a wave, and what becomes of it.
import type { IntentView } from '../../../engine/snapshot.ts';
import type { RolloutDefinition, WaveDefinition } from '../../../policies/definition.ts';

/** Something that happens at an instant, in seconds after the template changed to `rev-2` in all zones. */
export type Happening = { readonly at: number } & (
  | { readonly kind: 'template'; readonly revision: string; readonly zones?: readonly string[] }
  | { readonly kind: 'replicas'; readonly zones: readonly string[]; readonly replicas: number }
  /** Somebody whom the API server vouches for asks, of the run under way; `isAnonymous`: where no webhook stamps. */
  | { readonly kind: 'person'; readonly says: Partial<IntentView> & Pick<IntentView, 'action'>; readonly isAnonymous?: true }
  /** Somebody takes a word back. */
  | { readonly kind: 'takesBack'; readonly action: IntentView['action'] }
  | { readonly kind: 'podBreaks'; readonly pod: string }
  | { readonly kind: 'podDies'; readonly pod: string }
  /** `other`: that of another engine, which replaces nothing by itself; `bare`: RollingUpdate without a partition; `own`: it is put back. */
  | { readonly kind: 'strategy'; readonly zones: readonly string[]; readonly type: 'other' | 'bare' | 'own' }
  | { readonly kind: 'partition'; readonly zones: readonly string[]; readonly partition: number }
  /** The policy is edited. */
  | { readonly kind: 'waves'; readonly waves: readonly WaveDefinition[] }
  | { readonly kind: 'policyGone' }
  | { readonly kind: 'policyBack' }
);

export interface MidWaveRow {
  readonly name: string;
  readonly rollout?: Partial<RolloutDefinition>;
  readonly happens: readonly Happening[];
  /** Under the strategy onDelete. */
  readonly outcome: MidWaveOutcome;
  /** What is another one under another engine. */
  readonly differs?: Readonly<Partial<Record<Exclude<MidWaveEngine, 'onDelete'>, Partial<MidWaveOutcome>>>>;
}

export interface MidWaveOutcome {
  /** `done`; or what holds it for good. */
  readonly end: string;
  /** The last turn, in seconds. */
  readonly seconds: number;
  /** What each zone runs, by ordinal: the number of the revision, `!` when the pod is not ready. */
  readonly zones: Readonly<Record<string, string>>;
  /** How many pods went in all, whoever took them. */
  readonly replaced: number;
  /** Kind and outcome of every run, in their order. */
  readonly runs: readonly string[];
}

/** Every row is played under each of them. */
export const midWaveStrategies = ['onDelete', 'partition', 'pinned'] as const satisfies readonly RolloutDefinition['strategy'][];

export type MidWaveEngine = (typeof midWaveStrategies)[number];

/** What becomes of the row under an engine. */
export function outcomeUnder({ outcome, differs }: MidWaveRow, strategy: MidWaveEngine): MidWaveOutcome {
  return strategy === 'onDelete' ? outcome : { ...outcome, ...differs?.[strategy] };
}

export const all = { a: '2 2 2', b: '2 2 2', c: '2 2 2' } as const;
export const everyZone = ['a', 'b', 'c'] as const;
