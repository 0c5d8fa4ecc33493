// HTTP to the services that people are told by. What goes wrong is said without addresses: problems end up where tenants can read.
import type { NotifyHttp } from '../env.ts';
import type { Exchanges } from './http-exchange.ts';

interface NotifyHttpOptions {
  readonly exchanges: Pick<Exchanges, 'exchange'>;
  readonly userAgent: string;
}

export function createNotifyHttp({ exchanges, userAgent }: NotifyHttpOptions): NotifyHttp {
  return {
    call: async ({ site: _site, headers, ...request }) => {
      try {
        return await exchanges.exchange({ ...request, headers: { 'User-Agent': userAgent, Accept: 'application/json', ...headers } });
      } catch (error) {
        throw new Error(spoken(error));
      }
    },
  };
}

/** Words of the system may name an address; its code does not. */
function spoken(error: unknown): string {
  if (!(error instanceof Error)) return 'no answer';
  const { cause } = error;
  if (cause === undefined) return error.message;
  const code = cause instanceof Error && 'code' in cause && typeof cause.code === 'string' ? cause.code : '';
  return /^[A-Z][A-Z0-9_]{2,60}$/.test(code) ? `no answer (${code})` : 'no answer';
}
