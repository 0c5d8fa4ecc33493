// Reviews sent to one process of the webhook, as an API server sends them; what is allowed is not carried out.
import { Agent, request } from 'node:https';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import type { ApiClient, KubernetesObject } from '../control-plane/client.ts';
import type { WebhookProcess } from '../control-plane/webhook.ts';
import type { StatefulSet } from '../control-plane/workloads.ts';

export interface Answer {
  readonly allowed: boolean;
  readonly auditAnnotations?: Readonly<Record<string, string>>;
  readonly status?: { readonly code?: number; readonly message?: string; readonly details?: { readonly retryAfterSeconds?: number } };
}

export interface Asker {
  /** The part `request` of a review, without what every one has. Rejects when there is no answer. */
  readonly ask: (process: Pick<WebhookProcess, 'port'>, asked: object) => Promise<Answer>;
  /** Asks again while the process answers that it cannot judge yet, because its machine has much else to do. */
  readonly askUntilJudged: (process: Pick<WebhookProcess, 'port'>, asked: object) => Promise<Answer>;
  readonly close: () => void;
}

const mostRetries = 10;

interface Configuration extends KubernetesObject {
  readonly webhooks: readonly { readonly clientConfig: { readonly caBundle?: string } }[];
}

/** Believes the authority that the configuration names. Each process is asked over connections of its own. */
export async function createAsker(admin: ApiClient, namespace: string): Promise<Asker> {
  const configurations = '/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations';
  const { webhooks } = await admin.get<Configuration>(`${configurations}/rollout-group`);
  const agent = new Agent({ keepAlive: true, ca: Buffer.from(webhooks[0]?.clientConfig.caBundle ?? '', 'base64').toString() });
  const ask: Asker['ask'] = async ({ port }, asked) => {
    const uid = crypto.randomUUID();
    const userInfo = { username: 'kim', groups: ['system:authenticated'] };
    const body = {
      apiVersion: 'admission.k8s.io/v1',
      kind: 'AdmissionReview',
      request: { uid, userInfo, namespace, dryRun: false, ...asked },
    };
    const reply = await new Promise<string>((settle, reject) => {
      const headers = { 'content-type': 'application/json' };
      const where = { host: '127.0.0.1', servername: 'localhost', port, path: '/admission/enforce?timeout=5s' };
      const sent = request({ ...where, method: 'POST', headers, agent }, (answer) => {
        text(answer).then(settle, reject);
      });
      sent.on('error', reject);
      sent.end(JSON.stringify(body));
    });
    const { response }: { readonly response: Answer & { readonly uid: string } } = JSON.parse(reply);
    if (response.uid !== uid) throw new Error(`the answer is not to this review: ${reply}`);
    return response;
  };
  return {
    ask,
    askUntilJudged: async (process, asked) => {
      for (let attempt = 0; ; attempt += 1) {
        const answer = await ask(process, asked);
        const waitSeconds = answer.status?.details?.retryAfterSeconds ?? 0;
        if (waitSeconds === 0 || attempt === mostRetries) return answer;
        await delay(waitSeconds * 1000);
      }
    },
    close: () => agent.destroy(),
  };
}

export function evictionOf(namespace: string, name: string): object {
  return {
    kind: { group: 'policy', version: 'v1', kind: 'Eviction' },
    resource: { group: '', version: 'v1', resource: 'pods' },
    subResource: 'eviction',
    operation: 'CREATE',
    name,
    object: { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name, namespace } },
  };
}

/** By one replica, through `/scale`. */
export function decreaseOf({ metadata: { namespace, name }, spec }: StatefulSet): object {
  const scale = (replicas: number) => ({ apiVersion: 'autoscaling/v1', kind: 'Scale', metadata: { name, namespace }, spec: { replicas } });
  return {
    kind: { group: 'autoscaling', version: 'v1', kind: 'Scale' },
    resource: { group: 'apps', version: 'v1', resource: 'statefulsets' },
    subResource: 'scale',
    operation: 'UPDATE',
    name,
    oldObject: scale(spec.replicas),
    object: scale(spec.replicas - 1),
  };
}
