import { spawn } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { installation } from '../../install/installation.ts';
import { optionsOf } from '../install/given.ts';
import { runExecutable } from '../plugin/process.ts';

/** Instructions in their order, lines that are continued put together. */
const instructions = readFileSync('deploy/Dockerfile', 'utf8')
  .replaceAll('\\\n', ' ')
  .split('\n')
  .flatMap((line): readonly { readonly name: string; readonly words: readonly string[] }[] => {
    const [name = '', ...words] = line.trim().split(/\s+/);
    return name === '' || name.startsWith('#') ? [] : [{ name, words }];
  });

const of = (name: string): readonly (readonly string[])[] => instructions.filter((one) => one.name === name).map(({ words }) => words);

/** What is copied from where to where; the last word is the place in the image. */
const copies = of('COPY').map((words) => {
  const places = words.filter((word) => !word.startsWith('--'));
  return { from: places.slice(0, -1), to: places.at(-1) ?? '' };
});

interface PodSpec {
  readonly securityContext: { readonly runAsUser: number; readonly runAsGroup: number; readonly runAsNonRoot: boolean };
  readonly containers: readonly {
    readonly command?: unknown;
    readonly ports: readonly { readonly containerPort: number }[];
    readonly securityContext: { readonly readOnlyRootFilesystem: boolean };
  }[];
}

function installedPod(): PodSpec {
  const deployment = installation(optionsOf()).find(({ kind }) => kind === 'Deployment');
  if (deployment === undefined) throw new Error('no Deployment is installed');
  return (deployment['spec'] as { readonly template: { readonly spec: PodSpec } }).template.spec;
}

describe('the image of the agent', () => {
  it('is made of an image with Node and of files, and runs nothing while it is built', () => {
    expect(instructions.map(({ name }) => name)).toEqual([
      ...['ARG', 'FROM', 'WORKDIR', 'COPY', 'COPY', 'ENV', 'EXPOSE', 'USER', 'ENTRYPOINT'],
    ]);
    expect(of('ARG')).toEqual([['BASE=gcr.io/distroless/nodejs20-debian12:nonroot']]);
    expect(of('FROM')).toEqual([[`\${BASE}`]]);
    const [required = ''] = /\d+/.exec(String(JSON.parse(readFileSync('package.json', 'utf8')).engines.node)) ?? [];
    expect(of('ARG')[0]?.[0]).toContain(`/nodejs${required}-`);
  });

  it('contains the files that the build creates, and no others', () => {
    for (const { from } of copies) for (const path of from) expect([path, existsSync(path)]).toEqual([path, true]);
    expect(copies.flatMap(({ from }) => from).filter((path) => !path.startsWith('dist/'))).toEqual([]);
    const sent = readFileSync('deploy/Dockerfile.dockerignore', 'utf8')
      .split('\n')
      .filter((line) => line !== '' && !line.startsWith('#'));
    expect(sent).toEqual(['*', '!dist']);
  });

  it('runs as the Deployment says: user nobody, its ports, its entry point', () => {
    const { securityContext, containers } = installedPod();
    const [container] = containers;
    expect(of('USER')).toEqual([[`${securityContext.runAsUser}:${securityContext.runAsGroup}`]]);
    expect([securityContext.runAsNonRoot, container?.securityContext.readOnlyRootFilesystem]).toEqual([true, true]);
    expect(of('EXPOSE').flat()).toEqual(container?.ports.map(({ containerPort }) => `${containerPort}`));
    // Arguments alone, so that the entry point of the image stays.
    expect(container).not.toHaveProperty('command');
  });
});

describe('the contents of the image', () => {
  const root = mkdtempSync(join(tmpdir(), 'rollout-group-image-'));
  const [directory = ''] = of('WORKDIR').flat();
  const [, entry = ''] = JSON.parse(of('ENTRYPOINT').flat().join(' ')) as readonly string[];

  beforeAll(() => {
    for (const { from, to } of copies) {
      const target = join(root, directory, to);
      mkdirSync(target, { recursive: true });
      // As COPY does: of a folder what is in it, of a file the file.
      for (const path of from) cpSync(path, path.endsWith('/') ? target : join(target, path.replace(/^.*\//, '')), { recursive: true });
    }
  });
  afterAll(() => rmSync(root, { recursive: true, force: true }));

  it('is all that the agent needs to say how it is used, and which version it is', () => {
    expect(resolve(join(root, entry))).toBe(join(root, directory, 'rollout-group-agent'));
    const usage = runExecutable('rollout-group-agent', ['-help'], { dist: join(root, directory) });
    expect([usage.status, usage.stdout.split('\n')[0]]).toEqual([0, 'Usage: rollout-group-agent -kubernetes.namespace NAMESPACE [flags]']);
  });

  it('is all that it needs to listen, and to ask for its cluster', async () => {
    const flags = ['-kubernetes.namespace=x', '-server.port=0', '-server-tls.enabled=true', '-server-tls.port=0'];
    const child = spawn(process.execPath, [join(root, entry), ...flags], { env: { NODE_ENV: 'production' }, cwd: '/' });
    let said = '';
    child.stderr.on('data', (data: Buffer) => {
      said += data.toString();
    });
    const status = await new Promise((settle) => child.on('close', settle));
    // Where no cluster is it comes as far as asking for one.
    expect(said).toContain('KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set');
    expect(said).not.toMatch(/ERR_MODULE_NOT_FOUND|Cannot find/);
    expect(status).toBe(1);
  });
});
