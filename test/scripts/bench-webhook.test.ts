import { expect, it } from 'vitest';
import { type Figure, figureTable, isKept } from '../../scripts/bench/figure.ts';
import { evictionFigures, loadFigures } from '../../scripts/bench/webhook.ts';
import { driveLoad, type LoadReport, loadCount, restCount } from '../../scripts/bench/webhook-client.ts';
import { slopeOf } from '../../scripts/bench/webhook-memory.ts';
import { reviewsOf } from '../../scripts/bench/webhook-reviews.ts';
import { type ServerReport, startLoadServer } from '../../scripts/bench/webhook-server.ts';

const kinds = ['webhook', 'bare'] as const;

/** A short load on a server in this process, with a new certificate in the middle of it. */
async function load(kind: (typeof kinds)[number], options: { readonly scenario: 'reviews' | 'evictions'; readonly bigEvery?: number }) {
  const size = { rate: 100, seconds: 0.4 };
  const server = await startLoadServer({ kind, scenario: options.scenario, count: loadCount(size) });
  const { port, ca } = server;
  const client = await driveLoad(
    { ...options, ...size, port, ca, areJudged: kind === 'webhook' },
    { rotate: server.rotate, rest: server.look },
  );
  return { client, server: await server.finish() };
}

for (const kind of kinds) {
  it.concurrent(`every request of a load on a ${kind} server is answered as it should be, while its certificate changes`, async () => {
    const { client, server } = await load(kind, { scenario: 'reviews', bigEvery: 10 });
    expect(client).toMatchObject({ asked: 40, failed: 0, problems: [], certificates: 2 });
    expect(server.samples).toHaveLength(restCount);
    expect([client.answerMs.length, client.bigAnswerMs.length]).toEqual([36, 4]);
    expect([server.handlerMs.length, server.bigHandlerMs.length]).toEqual(kind === 'bare' ? [0, 0] : [36, 4]);
  });
}

it.concurrent('every eviction of a load is let pass by a reservation', async () => {
  const { client, server } = await load('webhook', { scenario: 'evictions' });
  expect(client).toMatchObject({ asked: 40, failed: 0, problems: [] });
  expect(server.ledgerWrites).toBeGreaterThan(0);
});

it.concurrent('an answer that is not the verdict it should be counts as a failure, and so does none', async () => {
  const server = await startLoadServer({ kind: 'bare', scenario: 'evictions', count: 20 });
  const options = { ca: server.ca, scenario: 'evictions', rate: 100, seconds: 0.2, areJudged: true } as const;
  const listener = { rotate: server.rotate, rest: server.look };
  const wrong = await driveLoad({ ...options, port: server.port }, listener);
  await server.finish();
  const none = await driveLoad({ ...options, port: server.port }, listener);
  // Those that warm up count too.
  expect([wrong.asked, wrong.failed, wrong.problems[0]]).toEqual([20, 120, expect.stringContaining('was answered with 200')]);
  expect([none.asked, none.failed, none.problems[0]]).toEqual([20, 120, expect.stringContaining('got no answer')]);
});

it('reviews are of 20 KiB, or of 3 MiB', () => {
  const lengths = (areBig: boolean): readonly number[] =>
    reviewsOf('reviews', { areBig }).map(({ before, after }) => before.length + after.length);
  for (const bytes of lengths(false)) expect(bytes / 1024).toBeCloseTo(19, -1);
  for (const bytes of lengths(true)) expect(bytes / 2 ** 20).toBeCloseTo(3, 1);
});

it('the growth of memory is the median of what any two looks tell, in MiB a minute', () => {
  const samples = [10, 10.1, 90, 10.3, 10.4].map((keptMiB, index) => ({ atMs: index * 6_000, keptMiB, residentMiB: 0 }));
  expect(slopeOf(samples, ({ keptMiB }) => keptMiB)).toBeCloseTo(1, 5);
  expect(slopeOf(samples, ({ residentMiB }) => residentMiB)).toBe(0);
  expect(slopeOf(samples.slice(0, 1), ({ keptMiB }) => keptMiB)).toBeNaN();
});

const quick: LoadReport = {
  asked: 100,
  answerMs: [1, 2, 3],
  bigAnswerMs: [],
  failed: 0,
  problems: [],
  lateMs: 0,
  connections: 2,
  certificates: 2,
};
const still: ServerReport = {
  handlerMs: [1, 2],
  bigHandlerMs: [],
  ledgerWrites: 3,
  samples: [0, 60_000].map((atMs) => ({ atMs, keptMiB: 20, residentMiB: 80 })),
};

function missed(figures: readonly Figure[], slack = 1): readonly string[] {
  return figures.filter((figure) => !isKept(figure, slack)).map(({ what }) => what.replace(/^.*?: /, ''));
}

it('judges the handler, the slowest answer, losses and growth, each for itself', () => {
  const judged = (client: Partial<LoadReport>, server: Partial<ServerReport>, isLong = false): readonly string[] => {
    const measured = { client: { ...quick, ...client }, server: { ...still, ...server } };
    return missed(loadFigures(measured, { client: quick, server: still }, isLong));
  };
  expect(judged({}, {})).toEqual([]);
  expect(judged({}, { handlerMs: [1, 11] })).toEqual(["handler's own time, p99"]);
  expect(judged({ answerMs: [1, 1001] }, {})).toEqual(['from request to answer, max']);
  expect(judged({ bigAnswerMs: [1001] }, {}, true)).toEqual(['from request to answer, max']);
  expect(judged({ failed: 1 }, {})).toEqual(['of 100 requests lost, or with a wrong answer']);
  expect(judged({ certificates: 1 }, {})).toEqual(['of 100 requests lost, or with a wrong answer']);
  const growing = [0, 60_000].map((atMs) => ({ atMs, keptMiB: 20 + atMs / 50_000, residentMiB: 80 + atMs / 50_000 }));
  expect(judged({}, { samples: growing })).toEqual(['growth of memory kept, last half']);
  expect(judged({}, { samples: growing }, true)).toEqual(['growth of memory kept, last half', 'growth of resident memory, last half']);
  expect(judged({}, { samples: [] })).toEqual(['growth of memory kept, last half']);
});

it('judges verdicts with a reservation', () => {
  const figures = (client: Partial<LoadReport>): readonly Figure[] => evictionFigures({ client: { ...quick, ...client }, server: still });
  expect(missed(figures({}))).toEqual([]);
  expect(missed(figures({ answerMs: [151] }))).toEqual(['verdict with reservation, p99']);
  // No slack excuses a request that was lost.
  expect(missed(figures({ failed: 1 }), 5)).toEqual(['of 100 requests lost, or with a wrong answer']);
  expect(figureTable(figures({ failed: 2 }), 5).at(-1)).toMatch(/ 2 requests +at most 0 requests +MISSED /);
});
