// The pause before a request to a forge is sent again, by the answers that GitHub and GitLab document.
import { describe, expect, it } from 'vitest';
import { pauseMs } from '../../../plugin/forge/retry.ts';

const nowMs = Date.parse('2026-11-26T10:00:00Z');
const inSeconds = (seconds: number): string => String(nowMs / 1000 + seconds);
const secondary = '{"message":"You have exceeded a secondary rate limit. Please wait a few minutes before you try again."}';

interface Answered {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

function pauses({ status, headers = {}, body = '' }: Answered, isRepeatable = true): readonly (number | undefined)[] {
  return [1, 2, 3].map((attempt) => pauseMs({ status, headers, body }, { isRepeatable }, nowMs, attempt));
}

describe('the pause before a second request', () => {
  it.each<readonly [string, Answered, readonly (number | undefined)[]]>([
    ['as long as Retry-After', { status: 403, headers: { 'retry-after': '30' }, body: secondary }, [30_000, 30_000, 30_000]],
    ['a minute or more after a limit without an end', { status: 403, body: secondary }, [60_000, 120_000, undefined]],
    [
      'a minute or more also if the hourly limit of GitHub ends later',
      { status: 429, headers: { 'x-ratelimit-remaining': '4000', 'x-ratelimit-reset': inSeconds(3_000) }, body: secondary },
      [60_000, 120_000, undefined],
    ],
    [
      'until the hourly limit of GitHub ends',
      { status: 403, headers: { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': inSeconds(45) } },
      [45_000, 45_000, 45_000],
    ],
    [
      'none if the hourly limit ends too late',
      { status: 403, headers: { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': inSeconds(3_000) } },
      [undefined, undefined, undefined],
    ],
    ['until the limit of GitLab ends', { status: 429, headers: { 'ratelimit-reset': inSeconds(20) } }, [20_000, 20_000, 20_000]],
    [
      'a minute or more after the limit of one endpoint of GitLab',
      { status: 429, body: '{"message":{"error":"This endpoint has been requested too many times. Try again later."}}' },
      [60_000, 120_000, undefined],
    ],
    [
      'none without a permission',
      { status: 403, body: '{"message":"Resource not accessible by integration"}' },
      [undefined, undefined, undefined],
    ],
    ['short after an error of the forge', { status: 502 }, [500, 1_000, 2_000]],
    ['short after a conflict', { status: 409 }, [500, 1_000, 2_000]],
    ['none after a value that the forge does not accept', { status: 422 }, [undefined, undefined, undefined]],
  ])('is %s', (_, answer, expected) => {
    expect(pauses(answer)).toEqual(expected);
  });

  it('is none after an error if a second request could have a second effect, except for a rate limit', () => {
    expect(pauses({ status: 502 }, false)).toEqual([undefined, undefined, undefined]);
    expect(pauses({ status: 429, headers: { 'retry-after': '1' } }, false)).toEqual([1_000, 1_000, 2_000]);
  });
});
