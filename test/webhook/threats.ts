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
      ...prepare('a request that no API server made'),
    ],
  },
  {
    id: 2,
    stride: 'TE',
    threat: 'A forged object leads the calls to pods to an address of the sender, in the name of the agent.',
    rule: 'Native endpoints call nobody. /admission/prepare-downscale calls pods as the stored StatefulSet names them, and an object of a review that is not the stored one is refused.',
    tests: [
      ...prepare('does not call pods where its own object says', 'is not one of another StatefulSet of the name'),
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
    tests: [...hostile('a body that is too long', 'big bodies'), ...transport('is refused with 415 when it would have to be unpacked')],
  },
  {
    id: 4,
    stride: 'D',
    threat: 'JSON that is deep, wide, or says a field twice, takes the time or means two things.',
    rule: 'Depth and number of values are counted before anything is parsed. Of two fields of one name the last counts, as for the API server, and nothing rests on it.',
    tests: review(
      'is refused before it is parsed when it is too deep or too wide',
      'may have unknown fields, and a field twice: the last one counts',
      'loses entries that would reach a prototype, in any spelling',
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
      ...pattern('finds what the matcher of JavaScript finds, in the language that both have'),
      ...load('is too much while timers come late, twice in a row'),
      ...deadline('are answered by the failure of their endpoint, as something temporary, and others go on'),
    ],
  },
  {
    id: 7,
    stride: 'D',
    threat: 'Webhooks that do not answer hold up the whole cluster.',
    rule: 'Only namespaces that are opted in, and only exact requests, are asked about; our own pods, nodes and controllers never are; what must not wait has failurePolicy Ignore; several replicas on several nodes, with a budget of their own.',
    tests: [
      ...webhooks(
        'enforce only where a namespace is opted in, and stand for who asked everywhere',
        'are these, and hear of nothing else',
        'look at the annotations that protect, and not at those by which an adopted group is steered',
        'spare the pods of the agent that the process spares, and no others',
      ),
      ...installation('has a disruption budget where there is more than one pod'),
      ...unknown('the deletion of a pod passes with any unknown fact', 'growth passes with any unknown fact'),
      ...enforce('requests that must always pass (S32)'),
      ...outage('that is dead refuses what is protected, while everything else goes on and a hundred pods leave'),
      ...of(`${here}/outage-drain.cluster.ts`)('loses no request, and the pods of every group leave within their budget'),
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
        'a group is protected from %s, and what is no group is not',
        'kubectl drain takes no more than the budget, and all pods without one',
        'a pod is not taken out of its group beyond the budget, and then deleted without a group',
      ),
      ...release('is judged as if it deleted the pod: refused beyond the budget, and counted within it'),
      ...enforce('protected objects are protected on every path', 'is remembered when a write of the status takes it away'),
      ...webhooks(
        'hear of other versions of what they name, ask for reviews in v1 and answer in time',
        'never name a request that may have no name: the items of a deleted collection',
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
      ...asked('takes an absent number as the API server does: 1 of a StatefulSet, 0 of a Scale'),
      ...outage('that loses the API server refuses what is protected and says why, and lets everything else pass'),
      ...noDownscale('denies a smaller Scale, of which it cannot tell'),
      ...eviction('denies for a while when budgets have not been listed', 'denies under a budget that was never valid, and nowhere else'),
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
        'is judged as if it deleted the pod: refused beyond the budget, and counted within it',
        'never blocks nodes and controllers, terminating pods, and writes that remove nothing',
      ),
      ...bypass('a pod is not taken out of its group beyond the budget, and then deleted without a group'),
      ...bypass(
        'labels that are %s first protect for a while in which replicas stay, and what has lost others shrinks',
        'the time between zones is not lowered first to shrink then, and may become longer',
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
      ...webhooks('select no objects: requests for /scale and /eviction carry no labels of what they are about'),
    ],
  },
  {
    id: 11,
    stride: 'E',
    threat: 'Somebody edits a webhook configuration, its authority, or the label of a namespace.',
    rule: 'The authority is put back; the failure policy of each webhook is a metric; the agent itself may only write the configurations that are installed. What is registered is compared with what an installation registers, and labels of namespaces with what they were: log, metric and doctor tell of what was changed.',
    tests: [
      ...registration(
        'is told of after two looks, and is over when it is as it was',
        'is told of when a configuration is deleted, unless there never was one',
        'is told of for each namespace that loses its label, until it has it again or is gone',
        'are narrowed again when a user applies them as they were, and more and more slowly if that repeats',
        'is told of in each of many namespaces, some of them at each look',
      ),
      ...of(`${here}/reapplied.cluster.ts`)(
        'by %s is narrowed again, and nothing that is protected passes meanwhile',
        'by %s while no webhook answers denies requests about protected objects',
      ),
      ...narrowing('says that %s', 'says what is missing'),
      ...doctor('says what was changed, at most five of it by name, and where nothing is enforced'),
      ...injection(
        'gets it again when a user removes it, and its new entries get it too',
        'the failure policy of each entry is told, and that of what was deleted is forgotten',
      ),
      ...rights('name every configuration that is installed, and no other'),
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
      ...killed('%s: never are two granted, and the claim in the ledger blocks the other'),
      ...eviction('grant a zone as many as the limit, and no other zone any'),
      ...beside('never have two zones down at once, whichever client deletes pods, and the rollout completes'),
    ],
  },
  {
    id: 13,
    stride: 'T',
    threat: 'What was allowed never happens and holds the budget, or happens without a record.',
    rule: 'A reservation ends when its effect is seen, or after two minutes by the clock of each process. What cannot be stored is not allowed.',
    tests: [
      ...race(
        'an unused grant is free after two minutes, although a client tries again and again',
        'over many pairs with a kill at a seeded request',
      ),
      ...killed(
        'an unused grant is free two minutes after it was known, and no sooner',
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
      ...eviction('S29: a hundred dry runs write nothing and take nothing from the eviction that follows'),
      ...enforce('names what was allowed, and nothing that a dry run asked for (S29)'),
      ...unknown('a dry run writes nothing and notifies no client (S29)'),
      ...asked('takes a dry run from the options of an eviction too'),
    ],
  },
  {
    id: 15,
    stride: 'T',
    threat: 'An answer goes to another request, or its patch changes more than it should.',
    rule: 'The uid of the review is in its answer. The one patch that there is tests before it writes, and touches spec.requestedBy alone; more than ten operations are an error.',
    tests: [
      ...answer(
        'goes out with the apiVersion and the uid of its review',
        'is not written with a patch of more than ten operations, or of no JSON',
      ),
      ...stamp('S33: stamping again changes nothing, a moment later in another process too, and a patch tests before it writes'),
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
        'has at most 256 bytes, with what was asked, the rule, the fact and the id of the decision (threat 16)',
      ),
      ...answer('has a message of at most 1 KiB'),
      ...decision('is the answer to a failure when the endpoint rejects or throws; the reason stands in the log only'),
      ...transport('is one line for each, with neither bodies nor more of a name than it may have'),
    ],
  },
  {
    id: 17,
    stride: 'R',
    threat: 'Nobody can say afterwards who was allowed what, and by which policy.',
    rule: 'Each judgement goes into the audit log of the API server, beside who asked: outcome, rule, group, decision id, digest of the policies. A denial is an Event that its id finds. Intents carry who asked, and so do reservations: explain names them.',
    tests: [
      ...enforce('names what was allowed, and nothing that a dry run asked for (S29)'),
      ...of('test/engine/judge/admission-claims.test.ts')('is a claim without resource version and leadership'),
      ...of('test/engine/ledger/ledger-document.test.ts')('keeps the requester, and merges only entries of one requester'),
      ...of('test/engine/publish/decision.test.ts')(
        'names each requester with a grant, the latest first, and no requester for claims of the agent',
      ),
      ...of('test/plugin/live-output.test.ts')('names allowed disruptions with requester and time'),
      ...enforce('says the rule, the fact, where it is written and how to ask further, and tells the audit log'),
      ...of(`${here}/explained.cluster.ts`)('names a decision that explain finds, with the rule, the limit and who is asked: %s'),
      ...guard('is one Event in ten minutes over all processes, found by its id'),
      ...denial('tells the audit log by which policies and which rule'),
      ...stamp('overwrites what users write themselves when they create one'),
    ],
  },
  {
    id: 18,
    stride: 'SD',
    threat: 'TLS is weak, its certificate has ended, or its key gets out.',
    rule: 'TLS 1.2 or later; certificates are renewed, followed and repaired without a lost request; the key of the authority is forgotten; when the certificate ends is a metric.',
    tests: [
      ...hostile('speak HTTP/1.1 over TLS 1.2 or later, and nothing else'),
      ...connection('is rotated under load without a failed request'),
      ...newCertificate(
        'TLS clients that trust what the configuration says get an answer before, during and after a renewal, on old connections too',
      ),
      ...secret('no line of the log and no problem contains a key or a certificate'),
      ...authority('the key of the authority is nowhere in what is answered'),
      ...newCertificate('the end of the certificate'),
      ...lostCertificate(
        'whose Secret is deleted guards all the time, and makes another one',
        'whose Secret is overwritten with garbage guards all the time, and makes another certificate',
        'whose authority is removed from the configurations is not trusted, and restores it when permitted',
      ),
      ...of(`${here}/outage-expiry.cluster.ts`)(
        'is not believed any more, lets nothing pass that it guards, and gets another one as soon as that can be stored',
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
      ...denial('is temporary for an eviction that time may permit and for an unknown fact, and for good otherwise'),
      ...decision(
        'is temporary at the deadline, which the endpoint hears of',
        'is temporary when too much is in hand, and the endpoint is not asked',
      ),
      ...onServer('a denial reaches the person who asked, with its code, its reason and when to come again'),
      ...of(`${here}/compat/pod-eviction.cluster.ts`)(
        'lets one zone lose a pod, tells a drain to come again for another one, and takes nothing for a dry run',
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
      ...of(`${here}/native/pin-endpoint.test.ts`)('is let through as it is, with a warning, when %s'),
      ...of(`${here}/pinned.cluster.ts`)(
        'has every pod at its own revision, killed as often as one likes',
        'comes back at the old version, never at a new one, when no webhook answers, the ledger cannot be read, or names a missing revision',
      ),
      ...of(`${here}/admission-policy.cluster.ts`)('denies them on every path: replaced, applied by force, and by an administrator'),
      ...registration('is reported where pods are to be pinned and no webhook is called, enforced or not'),
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
        'a stamp stays as it is while nothing else is asked for',
        'no user changes a request of another person in their name',
        'every requester is stamped, with any value in the object, and the policy accepts it',
        'a forged one is denied again as soon as the configurations are deleted',
      ),
      ...of('test/install/registered-policies.test.ts')('are told of when one %s', 'are told of when a binding %s'),
      ...of('test/plugin/doctor/admission-policies.test.ts')('that were changed, or are bound without refusing, are failures'),
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
        'an undo writes its request, which blocks the revision, and names what remains',
        '%s is denied',
        'no user writes another requester into a stop',
      ),
      ...stamp('is left out of a new %s if it cannot be written, and any other value is removed', 'is required for %s'),
    ],
  },
];
