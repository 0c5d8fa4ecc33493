// Defines the pod of `helm test`, which connects to the agent through its Service.
import { agentName } from '../../policies/objects/agent-deployment.ts';
import { documents, ifKey, inserted } from './template.ts';

/**
 * Checks that the agent is ready, and that the certificate of the webhooks is for the name that API servers use. Repeats the check for
 * `WAIT_SECONDS`, because after an installation the agent starts, and nodes learn its addresses.
 */
export const connectionScript = `const { READY_URL, WEBHOOK_NAME, WEBHOOK_ADDRESS, WAIT_SECONDS } = process.env;
const { checkServerIdentity, connect } = require('node:tls');
const [host, port] = WEBHOOK_ADDRESS.split(':');
const readCertificate = () => new Promise((resolve, reject) => {
  const socket = connect({ host, port: Number(port), servername: WEBHOOK_NAME, rejectUnauthorized: false, timeout: 10000 }, () => {
    resolve(socket.getPeerCertificate());
    socket.destroy();
  });
  socket.on('error', reject).on('timeout', () => socket.destroy(new Error('the webhooks do not answer at ' + WEBHOOK_ADDRESS)));
});
const check = async () => {
  const { status } = await fetch(READY_URL, { signal: AbortSignal.timeout(10000) }).catch(({ message, cause }) => {
    throw new Error(READY_URL + ' does not answer: ' + (cause ? cause.message : message));
  });
  if (status !== 200) throw new Error(READY_URL + ' answers ' + status);
  const problem = checkServerIdentity(WEBHOOK_NAME, await readCertificate());
  if (problem) throw problem;
};
const endsAt = Date.now() + Number(WAIT_SECONDS) * 1000;
const attempt = () => check().then(
  () => console.log('the agent is ready, and its certificate is for ' + WEBHOOK_NAME),
  ({ message }) => {
    console.error(message);
    if (Date.now() < endsAt) setTimeout(attempt, 1000);
    else process.exit(1);
  },
);
attempt();
`;

export const connectionTest: string = documents([
  {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: `${agentName}-test`,
      namespace: '{{ $.Release.Namespace }}',
      annotations: { 'helm.sh/hook': 'test', 'helm.sh/hook-delete-policy': 'before-hook-creation' },
    },
    spec: {
      restartPolicy: 'Never',
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      securityContext: { runAsNonRoot: true, runAsUser: 65532, runAsGroup: 65532, seccompProfile: { type: 'RuntimeDefault' } },
      [ifKey('$.Values.imagePullSecrets', 'imagePullSecrets')]: {
        yes: { imagePullSecrets: inserted('yaml', '$.Values.imagePullSecrets') },
        no: {},
      },
      [ifKey('$.Values.nodeSelector', 'nodeSelector')]: { yes: { nodeSelector: inserted('yaml', '$.Values.nodeSelector') }, no: {} },
      [ifKey('$.Values.tolerations', 'tolerations')]: { yes: { tolerations: inserted('yaml', '$.Values.tolerations') }, no: {} },
      containers: [
        {
          name: 'test',
          image: '{{ include "rollout-group.image" $ }}',
          command: ['/nodejs/bin/node', '--eval', '$(SCRIPT)'],
          env: [
            { name: 'READY_URL', value: `http://${agentName}.{{ $.Release.Namespace }}.svc:8001/ready` },
            { name: 'WEBHOOK_NAME', value: `${agentName}.{{ $.Release.Namespace }}.svc` },
            { name: 'WEBHOOK_ADDRESS', value: `${agentName}.{{ $.Release.Namespace }}.svc:443` },
            { name: 'WAIT_SECONDS', value: '60' },
            { name: 'SCRIPT', value: connectionScript },
          ],
          resources: { requests: { cpu: '10m', memory: '64Mi' }, limits: { memory: '128Mi' } },
          securityContext: { allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: { drop: ['ALL'] } },
        },
      ],
    },
  },
]);
