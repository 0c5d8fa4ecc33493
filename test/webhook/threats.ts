// What could be done to the webhooks or through them, what we do about it, and the tests that show it.
import { type NamedTest, of } from '../kit/named-tests.ts';

export interface Threat {
  readonly id: number;
  /** Of STRIDE: spoofing, tampering, repudiation, information disclosure, denial of service, elevation of privilege. */
  readonly stride: string;
  readonly threat: string;
  readonly rule: string;
  readonly tests: readonly NamedTest[];
  /** What of it is not done, or not shown by a test, and why. */
  readonly open?: string;
}

/** Rows that are open. Whoever closes one lowers it; it is never raised. */
export const openRows = 0;

const here = 'test/webhook';

const bypass = of(`${here}/bypass.cluster.ts`);
const outage = of(`${here}/outage.cluster.ts`);
const lostCertificate = of(`${here}/outage-certificate.cluster.ts`);
const killed = of(`${here}/race-kill.cluster.ts`);
const fuzzedEndpoints = of(`${here}/fuzz-endpoints.test.ts`);
const newCertificate = of(`${here}/certificates/new-certificate.test.ts`);
const connection = of(`${here}/server/certificates.test.ts`);
const hostile = of(`${here}/server/hostile-clients.test.ts`);
const transport = of(`${here}/server/transport.test.ts`);
const deadline = of(`${here}/server/deadline.test.ts`);
const load = of(`${here}/server/parts.test.ts`);
const onServer = of(`${here}/server/admission.cluster.ts`);
const review = of(`${here}/review/read-review.test.ts`);
const answer = of(`${here}/review/write-answer.test.ts`);
const decision = of(`${here}/review/decide.test.ts`);
const protection = of('test/engine/judge/protection.test.ts');
const enforce = of(`${here}/native/enforce.test.ts`);
const unknown = of(`${here}/native/enforce-unknown.test.ts`);
const race = of(`${here}/native/enforce-race.test.ts`);
const denial = of(`${here}/native/denial.test.ts`);
const asked = of(`${here}/native/requests-of.test.ts`);
const stamp = of(`${here}/native/stamp-endpoint.test.ts`);
const prepare = of(`${here}/compat/prepare-downscale.test.ts`);
const noDownscale = of(`${here}/compat/no-downscale.test.ts`);
const eviction = of(`${here}/compat/pod-eviction.test.ts`);
const secret = of(`${here}/certificates/secret-keeper.test.ts`);
const files = of(`${here}/certificates/file-source.test.ts`);
const authority = of(`${here}/certificates/authority.test.ts`);
const injection = of(`${here}/certificates/inject-ca.test.ts`);
const guard = of('test/agent/admission/guard.test.ts');
const beside = of('test/agent/admission/with-agent.test.ts');
const condition = of('test/policies/condition/condition.test.ts');
const pattern = of('test/policies/linear-pattern.test.ts');
const webhooks = of('test/install/webhooks.test.ts');
const rights = of('test/install/rights.test.ts');
const installation = of('test/install/installation.test.ts');
const narrowing = of('test/install/narrowing.test.ts');
const registration = of(`${here}/registration/registration.test.ts`);
const doctor = of('test/plugin/doctor/webhooks.test.ts');
const stampPolicy = of(`${here}/admission-policy-stamp.cluster.ts`);
const stops = of(`${here}/stops-in-outage.cluster.ts`);
const release = of(`${here}/native/pod-release.test.ts`);

export const threats: readonly Threat[] = [
  {
    id: 1,
    stride: 'S',
    threat: 'Any pod that reaches the port sends reviews that no API server has made.',
    rule: 'What an answer rests on is read from the API server. A forged review makes nothing but announcements that end by themselves, records and Events. Client certificates can be demanded.',
    tests: [
      ...fuzzedEndpoints(
        '${count} forged reviews at every endpoint: an answer to each, no write but reservations and records, no call but to pods as they are stored (FUZZ_SEED=${seed})',
      ),
      ...connection('are accepted, and no others'),
      ...enforce('is judged by the stored object, not by the review (threat 1)'),
      ...prepare('a request that no API server sends'),
    ],
  },
  {
    id: 2,
    stride: 'TE',
    threat: 'A forged object leads the calls to pods to an address of the sender, in the name of the agent.',
    rule: 'Native endpoints call nobody. /admission/prepare-downscale calls pods as the stored StatefulSet names them, and an object of a review that is not the stored one is refused.',
    tests: [
      ...prepare('does not call pods at the address in its own object', 'is not for another StatefulSet of the same name'),
      ...fuzzedEndpoints(
        '${count} forged reviews at every endpoint: an answer to each, no write but reservations and records, no call but to pods as they are stored (FUZZ_SEED=${seed})',
      ),
    ],
  },
  {
    id: 3,
    stride: 'D',
    threat: 'A body that is too long, or grows when it is unpacked, takes the memory.',
    rule: 'Bodies end at 7 MiB, counted while they arrive; encodings are refused; few big bodies are in memory at once.',
    tests: [...hostile('a body over the limit', 'large bodies'), ...transport('is rejected with 415 if it is compressed')],
  },
  {
    id: 4,
    stride: 'D',
    threat: 'JSON that is deep, wide, or says a field twice, takes the time or means two things.',
    rule: 'Depth and number of values are counted before anything is parsed. Of two fields of one name the last counts, as for the API server, and nothing rests on it.',
    tests: review(
      'is rejected before parsing if it is too deep or too wide',
      'may have unknown fields, and a repeated field: the last one counts',
      'drops entries that would reach a prototype, in any spelling',
    ),
  },
  {
    id: 5,
    stride: 'D',
    threat: 'Slow clients, or many connections, leave no room for the API server.',
    rule: 'Handshake, headers, body and answer have times of their own; connections are limited in all and for each address; HTTP/1.1 only.',
    tests: hostile('a slow client', 'connections'),
  },
  {
    id: 6,
    stride: 'D',
    threat: 'A policy or a review that costs much to work out keeps everybody waiting.',
    rule: 'Conditions have a number of steps, patterns are matched in linear time, requests in hand are limited, and a process whose timers come late answers 429.',
    tests: [
      ...condition('the work of a condition is bounded'),
      ...pattern('has the matches of JavaScript, in the common syntax'),
      ...load('is too high while timers are late, twice in a row'),
      ...deadline('get the failure answer of their endpoint as temporary, and others continue'),
    ],
  },
  {
    id: 7,
    stride: 'D',
    threat: 'Webhooks that do not answer hold up the whole cluster.',
    rule: 'Only namespaces that are opted in, and only exact requests, are asked about; our own pods, nodes and controllers never are; what must not wait has failurePolicy Ignore; several replicas on several nodes, with a budget of their own.',
    tests: [
      ...webhooks(
        'enforce only in opted-in namespaces, and stamp requesters everywhere',
        'are complete, and receive no other request',
        'read the annotations that protect, and not the annotations that control an adopted group',
        'exempt the pods of the agent that the process exempts, and no others',
      ),
      ...installation('has a disruption budget for more than one pod'),
      ...unknown('the deletion of a pod passes with any unknown fact', 'a scale-up passes with any unknown fact'),
      ...enforce('requests that always pass (S32)'),
      ...outage('that is dead denies protected requests, while other requests continue and a hundred pods are deleted'),
      ...of(`${here}/outage-drain.cluster.ts`)('loses no request, and the pods of every group are evicted within their budget'),
    ],
  },
  {
    id: 8,
    stride: 'E',
    threat:
      'What is refused on one path is done on another: /scale, /status, DELETE in place of an eviction, another version, another form of patch, a collection, a write that ends a pod where it is.',
    rule: 'Every path on which a StatefulSet shrinks or a pod goes is asked about, in every version, and judged by the same rules. A deadline, another image and a status by which a pod has ended count as its deletion; what works from inside or below (exec, resize, taints, a forged readiness) is accepted, and said.',
    tests: [
      ...bypass(
        'a group is protected from %s, and other objects are not',
        'kubectl drain evicts only as many pods as the budget allows, and all pods without a budget',
        'a pod cannot be removed from its group beyond the budget and then deleted without a group',
      ),
      ...release('is judged like a deletion of the pod: denied beyond the budget, and counted within it'),
      ...enforce('protected objects are protected on every path', 'is recorded if a write of the status removes it'),
      ...webhooks(
        'receive other versions of their resources, request reviews in v1 and answer in time',
        'receive no request that may have no name: the items of a deleted collection',
      ),
    ],
  },
  {
    id: 9,
    stride: 'E',
    threat: 'An error lets a request pass: an object that cannot be read, replicas that are null, a dependency that is down.',
    rule: 'What cannot be told is refused for what is protected (S31), but for pod DELETE and growth. Numbers that are absent are what the API server makes of them.',
    tests: [
      ...unknown('unknown facts deny requests about protected objects (S31)'),
      ...asked('reads a missing number like the API server: 1 of a StatefulSet, 0 of a Scale'),
      ...outage('without the API server denies protected requests with the reason, and allows all others'),
      ...noDownscale('denies a smaller Scale, because its protection is unknown'),
      ...eviction('deny for a while if budgets have not been listed', 'deny under a budget that was never valid, and not elsewhere'),
      ...guard('is denied until the requests of users are known'),
    ],
  },
  {
    id: 10,
    stride: 'E',
    threat: 'The label that protects is taken away or made to say less first, or in the same write.',
    rule: 'The old and the new state are both judged; what was protected stays so for ten minutes, in every process, by what it had; no configuration selects objects.',
    tests: [
      ...enforce('removal of protection, in one request or in two (threat 10)'),
      ...release(
        'is judged like a deletion of the pod: denied beyond the budget, and counted within it',
        'never blocks nodes and controllers, terminating pods, and writes that release no pod',
      ),
      ...bypass('a pod cannot be removed from its group beyond the budget and then deleted without a group'),
      ...bypass(
        'labels that are %s still protect for a while, in which replicas stay; without them the StatefulSet shrinks',
        'the interval between zones cannot be lowered before a downscale, and may become longer',
      ),
      ...race('never shrink a StatefulSet that has %s a moment before, in another process'),
      ...of(`${here}/two-steps.cluster.ts`)('do not let the controller replace pods: %s'),
      ...protection(
        'waits if it changes the time for which others wait',
        'waits if it lowers that time, by the ledger if no annotation has it',
        'that lowers the interval between zones, or changes the endpoint of its pods, is recorded with the former values',
        'keeps the protection from before several changes',
      ),
      ...guard('are known to every process until they end'),
      ...webhooks('select no objects, because requests for /scale and /eviction have no labels'),
    ],
  },
  {
    id: 11,
    stride: 'E',
    threat: 'Somebody edits a webhook configuration, its authority, or the label of a namespace.',
    rule: 'The authority is put back; the failure policy of each webhook is a metric; the agent itself may only write the configurations that are installed. What is registered is compared with what an installation registers, and labels of namespaces with what they were: log, metric and doctor tell of what was changed.',
    tests: [
      ...registration(
        'is reported after two checks, and ends when it is reverted',
        'is reported if a configuration is deleted, unless it never existed',
        'is reported for each namespace that loses its label, until it has it again or is gone',
        'are narrowed again if a user applies the original ones, and more and more slowly if that repeats',
        'is reported in each of many namespaces, some of them at each check',
      ),
      ...of(`${here}/reapplied.cluster.ts`)(
        'by %s is narrowed again, and no protected request passes meanwhile',
        'by %s while no webhook answers denies requests about protected objects',
      ),
      ...narrowing('reports that %s', 'names the missing part'),
      ...doctor('names at most five changes, and where no request is enforced'),
      ...injection(
        'gets it again if a user removes it, and its new entries get it too',
        'the failure policy of each entry is reported, and dropped for deleted entries',
      ),
      ...rights('name exactly the installed configurations'),
    ],
  },
  {
    id: 12,
    stride: 'T',
    threat: 'Two processes allow the last permitted step at the same moment.',
    rule: 'An answer that allows is a reservation in the ledger, stored by compare-and-swap before it goes out (S30).',
    tests: [
      ...race('two requests for the last permitted step, in two processes (S30)'),
      ...of(`${here}/race.cluster.ts`)('are never both granted'),
      ...killed('%s: two requests are never both granted, and the claim in the ledger blocks the other'),
      ...eviction('grant evictions in one zone up to the limit, and no eviction in another zone'),
      ...beside('never have two zones down at once, whichever client deletes pods, and the rollout completes'),
    ],
  },
  {
    id: 13,
    stride: 'T',
    threat: 'What was allowed never happens and holds the budget, or happens without a record.',
    rule: 'A reservation ends when its effect is seen, or after two minutes by the clock of each process. What cannot be stored is not allowed.',
    tests: [
      ...race('an unused grant expires after two minutes, although a client retries', 'over many pairs with a kill at a seeded request'),
      ...killed(
        'an unused grant expires two minutes after it was known',
        'a used grant still blocks the second zone after two minutes without any agent, in a new process too',
      ),
      ...guard('drops an unused claim after two minutes by the clock of the process, also if the wall clock differs'),
      ...eviction('an eviction without a stored claim is denied'),
    ],
  },
  {
    id: 14,
    stride: 'D',
    threat: 'Dry runs use up the budget.',
    rule: 'A dry run is judged like any other request and reserves nothing, writes nothing and calls nobody (S29).',
    tests: [
      ...eviction('S29: a hundred dry runs write nothing and do not affect the next eviction'),
      ...enforce('names the allowed request, and is absent for a dry run (S29)'),
      ...unknown('a dry run writes nothing and notifies no client (S29)'),
      ...asked('reads a dry run from the options of an eviction too'),
    ],
  },
  {
    id: 15,
    stride: 'T',
    threat: 'An answer goes to another request, or its patch changes more than it should.',
    rule: 'The uid of the review is in its answer. The one patch that there is tests before it writes, and touches spec.requestedBy alone; more than ten operations are an error.',
    tests: [
      ...answer(
        'has the apiVersion and the uid of its review',
        'is not written with a patch of more than ten operations, or of invalid JSON',
      ),
      ...stamp('S33: stamping again changes nothing, also a moment later in another process, and a patch tests before it writes'),
      ...fuzzedEndpoints(
        '${count} forged reviews at every endpoint: an answer to each, no write but reservations and records, no call but to pods as they are stored (FUZZ_SEED=${seed})',
      ),
    ],
  },
  {
    id: 16,
    stride: 'I',
    threat: 'A denial tells of objects in other namespaces, of addresses, or of the inside of the process.',
    rule: 'Objects of other namespaces are not named; errors stand in the log alone; native denials have at most 256 bytes, all messages at most 1 KiB.',
    tests: [
      ...denial(
        'names no object of another namespace',
        'has at most 256 bytes, with the request, the rule, the fact and the id of the decision (threat 16)',
      ),
      ...answer('has a message of at most 1 KiB'),
      ...decision('is the answer to a failure if the endpoint rejects or throws; only the log has the reason'),
      ...transport('has one line for each, without bodies and with bounded names'),
    ],
  },
  {
    id: 17,
    stride: 'R',
    threat: 'Nobody can say afterwards who was allowed what, and by which policy.',
    rule: 'Each judgement goes into the audit log of the API server, beside who asked: outcome, rule, group, decision id, digest of the policies. A denial is an Event that its id finds. Intents carry who asked, and so do reservations: explain names them.',
    tests: [
      ...enforce('names the allowed request, and is absent for a dry run (S29)'),
      ...of('test/engine/judge/admission-claims.test.ts')('is a claim without resource version and leadership'),
      ...of('test/engine/ledger/ledger-document.test.ts')('keeps the requester, and merges only entries of one requester'),
      ...of('test/engine/publish/decision.test.ts')(
        'names each requester with a grant, the latest first, and no requester for claims of the agent',
      ),
      ...of('test/plugin/live-output.test.ts')('names allowed disruptions with requester and time'),
      ...enforce('names the rule, the fact, its location and the next command, and writes the audit log'),
      ...of(`${here}/explained.cluster.ts`)('names a decision that explain finds, with the rule, the limit and the requester: %s'),
      ...guard('is one Event in ten minutes over all processes, found by its id'),
      ...denial('names the policies and the rule in the audit log'),
      ...stamp('overwrites a stamp that users write themselves on create'),
    ],
  },
  {
    id: 18,
    stride: 'SD',
    threat: 'TLS is weak, its certificate has ended, or its key gets out.',
    rule: 'TLS 1.2 or later; certificates are renewed, followed and repaired without a lost request; the key of the authority is forgotten; when the certificate ends is a metric.',
    tests: [
      ...hostile('only speak HTTP/1.1 over TLS 1.2 or later'),
      ...connection('is rotated under load without a failed request'),
      ...newCertificate(
        'TLS clients that trust the configuration get an answer before, during and after a renewal, on old connections too',
      ),
      ...secret('no line of the log and no problem contains a key or a certificate'),
      ...authority('the key of the authority is in no part of the answer'),
      ...newCertificate('the end of the certificate'),
      ...lostCertificate(
        'with a deleted Secret keeps enforcing, and creates another one',
        'with an invalid Secret keeps enforcing, and creates another certificate',
        'without its authority in the configurations is not trusted, and restores it when permitted',
      ),
      ...of(`${here}/outage-expiry.cluster.ts`)(
        'is no longer trusted, allows no protected request, and is replaced as soon as the new one can be stored',
      ),
      ...files('is read again soon after a file changes, and within ten seconds without a change event'),
    ],
  },
  {
    id: 19,
    stride: 'D',
    threat: 'A wrong code makes clients try for ever, or give up.',
    rule: 'An eviction that may pass by itself is refused with 429, which kubectl drain tries again; all else with 403 or 422, whose text kubectl prints at once.',
    tests: [
      ...denial('is temporary for an eviction that time may permit and for an unknown fact, and permanent otherwise'),
      ...decision('is temporary at the deadline, which aborts the endpoint', 'is temporary under overload, without a call of the endpoint'),
      ...onServer('a denial reaches its requester, with its code, its reason and the retry time'),
      ...of(`${here}/compat/pod-eviction.cluster.ts`)(
        'one zone loses a pod, a drain of another zone must retry, and a dry run uses no budget',
      ),
    ],
  },
  {
    id: 20,
    stride: 'TID',
    threat: 'Whoever places pods is used to bring a version in early, to read templates of others, or keeps pods from being made.',
    rule: 'The ledger is read for each pod; a revision counts when the StatefulSet of the pod controls it, and a copy of one when that StatefulSet is known. What is unknown leaves the pod as its controller made it; no pod is refused.',
    tests: [
      ...of('test/engine/strategies/pinned/placement.test.ts')(
        'is where its controller made it, which is said, when %s',
        'is not asked for twice: a pod that carries the revision stays, and what was added in between is kept',
        'counts on the copy in the ledger where the history no longer has the revision, or it cannot be read',
      ),
      ...of(`${here}/native/pin-endpoint.test.ts`)('is allowed unchanged, with a warning, if %s'),
      ...of(`${here}/pinned.cluster.ts`)(
        'keeps every pod at its revision after any number of deletions',
        'returns pods at the earlier revision if no webhook answers, the ledger cannot be read, or names a missing revision',
      ),
      ...of(`${here}/admission-policy.cluster.ts`)('denies them on every path: replaced, applied by force, and by an administrator'),
      ...registration('is reported if pods are pinned and no webhook is called, enforced or not'),
    ],
  },
  {
    id: 21,
    stride: 'SE',
    threat: 'Whoever may write intents writes there who asked, when the webhook that stamps them is taken away or was never registered.',
    rule: 'The API server itself compares the stamp with who asks, at each write, and refuses another one: it may only say nothing, which counts for nobody. doctor tells of a policy that is gone, changed, or refuses nobody.',
    tests: [
      ...stampPolicy(
        'a stamp %s is denied on every path',
        'exempts no user: neither an administrator nor the agent',
        'a stamp stays while no other action is requested',
        'no user changes a request under the name of another user',
        'every requester is stamped, with any value in the object, and the policy accepts it',
        'a forged stamp is denied again as soon as the configurations are deleted',
      ),
      ...of('test/install/registered-policies.test.ts')('are reported if one %s', 'are reported if a binding %s'),
      ...of('test/plugin/doctor/admission-policies.test.ts')('that were changed, or are bound without a denial, are failures'),
    ],
  },
  {
    id: 22,
    stride: 'DE',
    threat:
      'No user can stop a rollout while the webhooks are away and the agent acts; or a request that stops is used to let something pass.',
    rule: 'Only a new pause, protection or undo passes without a webhook; it counts as unverified, and the API server still denies a false requester. Every change of a stored request needs a verified requester, so no pause ends early and no approval appears. Deletions of requests are not affected.',
    tests: [
      ...stops(
        'a pause is written, counts as unverified, and stops the agent',
        'a protection is written',
        'an undo writes its request, which blocks the revision, and names the remaining steps',
        '%s is denied',
        'no user writes another requester into a stop',
      ),
      ...stamp('is omitted from a new %s if it cannot be written, and any other value is removed', 'is required for %s'),
    ],
  },
];
