// Runs the shell steps of a GitHub action and of a GitLab job as their runners do, with the built plugin on the PATH.
import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { runInNewContext } from 'node:vm';
import { parse } from 'yaml';
import { builtFolder, folderWith } from '../../plugin/process.ts';

interface Step {
  readonly id?: string;
  readonly if?: string;
  readonly run?: string;
  readonly env?: Readonly<Record<string, string>>;
}

interface Action {
  readonly inputs: Readonly<Record<string, { readonly default: string }>>;
  readonly outputs: Readonly<Record<string, { readonly value: string }>>;
  readonly runs: { readonly steps: readonly Step[] };
}

export interface Job {
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
}

interface Ended {
  readonly status: number;
  readonly log: string;
  readonly outputs: Readonly<Record<string, string>>;
  readonly summary: string;
  /** The folder that the steps know as the temporary folder of the runner. */
  readonly temp: string;
}

/** Runs the steps of the action. A step with `uses` does nothing, because it is of another project. */
export async function runAction({ cwd, env }: Job, given: Readonly<Record<string, string>>): Promise<Ended> {
  const action: Action = parse(readFileSync('deploy/github/action.yml', 'utf8'));
  const temp = folderWith({ output: '', path: '', summary: '' });
  const defaults = Object.entries(action.inputs).map(([name, { default: value }]) => [name, value]);
  const steps: Record<string, { outputs: Record<string, string> }> = {};
  const contexts = { github: { token: env['GITHUB_TOKEN'] ?? '' }, runner: { temp }, steps };
  const resolved = (text: string, inputs = {}) => evaluated(text, { ...contexts, inputs });
  const inputs = { ...Object.fromEntries(defaults.map(([name = '', value = '']) => [name, resolved(value)])), ...given };
  const [output, path, summary] = ['output', 'path', 'summary'].map((name) => join(temp, name)) as [string, string, string];
  let [status, log] = [0, ''];
  for (const { id, if: condition = 'true', run, env: ofStep = {} } of action.runs.steps) {
    writeFileSync(output, '');
    if (id !== undefined) steps[id] = { outputs: {} };
    if (status !== 0 || run === undefined || !isTrue(condition, { ...contexts, inputs })) continue;
    const values = Object.fromEntries(Object.entries(ofStep).map(([name, text]) => [name, resolved(text, inputs)]));
    const files = { GITHUB_OUTPUT: output, GITHUB_PATH: path, GITHUB_STEP_SUMMARY: summary };
    // The token of the job is known only to steps that ask for it.
    const { GITHUB_TOKEN: _, ...ofJob } = env;
    const added = readFileSync(path, 'utf8').split('\n').reverse().join(':');
    const PATH = `${added}${env['PATH'] ?? `${builtFolder()}:${process.env['PATH']}`}`;
    const ended = await shell(run, { cwd, env: { ...ofJob, PATH, ...values, ...files } });
    [status, log] = [ended.status, log + ended.log];
    const lines = readFileSync(output, 'utf8').split('\n').filter(Boolean);
    if (id !== undefined) steps[id] = { outputs: Object.fromEntries(lines.map((line) => line.split(/=(.*)/s).slice(0, 2))) };
  }
  const outputs = Object.fromEntries(Object.entries(action.outputs).map(([name, { value }]) => [name, resolved(value, inputs)]));
  return { status, log, outputs, summary: readFileSync(summary, 'utf8'), temp };
}

/** Runs the script of a job of the GitLab template. */
export async function runGitLabJob(name: string, { cwd, env }: Job): Promise<Pick<Ended, 'status' | 'log'>> {
  const template = parse(readFileSync('deploy/gitlab/rollout-group.gitlab-ci.yml', 'utf8'));
  const { script, variables } = template[name] as { readonly script: readonly string[]; readonly variables: Record<string, string> };
  const PATH = `${builtFolder()}:${process.env['PATH']}`;
  return await shell(script.join('\n'), { cwd, env: { PATH, ...template.variables, ...variables, ...env } });
}

async function shell(script: string, { cwd, env }: Job): Promise<Pick<Ended, 'status' | 'log'>> {
  const child = spawn('bash', ['--noprofile', '--norc', '-eo', 'pipefail', '-c', script], { cwd, env: { HOME: cwd, ...env } });
  const chunks: string[] = [];
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text: string) => void chunks.push(text));
  const status = await new Promise<number>((resolve) => child.on('close', (code) => resolve(code ?? 1)));
  return { status, log: chunks.join('') };
}

function evaluated(text: string, contexts: object): string {
  return text.replace(/\$\{\{ (.*?) \}\}/g, (_, expression: string) => String(valueIn(expression, contexts)));
}

function isTrue(condition: string, contexts: object): boolean {
  return Boolean(valueIn(condition, contexts));
}

/** Evaluates the part of the expressions that the action uses, which means the same in JavaScript. Unknown outputs are empty. */
function valueIn(expression: string, contexts: object): unknown {
  const properties = expression
    .replace(/\.(\w+(?:-\w+)+)/g, '["$1"]')
    .replace(/(steps\.\w+\.outputs(?:\.\w+|\["[\w-]+"\]))/g, '($1 ?? "")');
  return runInNewContext(properties, { ...contexts });
}

/** A repository whose last commit merges the change into the base, as the merge commit of a pull request. */
export async function scratchRepository(base: Readonly<Record<string, string>>, head: Readonly<Record<string, string>>): Promise<string> {
  const cwd = folderWith(base);
  const git = 'git -c user.name=x -c user.email=x@example.com -c init.defaultBranch=main -c commit.gpgsign=false';
  const run = async (script: string): Promise<void> => {
    const { status, log } = await shell(script, { cwd, env: { PATH: process.env['PATH'] ?? '' } });
    if (status !== 0) throw new Error(log);
  };
  await run(`${git} init -q && git add -A && ${git} commit -qm base && git checkout -qb change`);
  for (const [path, text] of Object.entries(head)) {
    if (!existsSync(join(cwd, path, '..'))) mkdirSync(join(cwd, path, '..'), { recursive: true });
    writeFileSync(join(cwd, path), text);
  }
  await run(`git add -A && ${git} commit -qm change && git checkout -q main && ${git} merge -q --no-ff change -m merge`);
  return cwd;
}
