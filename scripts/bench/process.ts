// Reads the memory and the processor time of a process from the kernel.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';

interface Memory {
  readonly residentMiB: number;
  /** Peak resident memory. */
  readonly peakMiB: number;
}

export function memoryOf(pid: number): Memory {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  const mib = (name: string): number => Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(status)?.[1] ?? Number.NaN) / 1024;
  return { residentMiB: mib('VmRSS'), peakMiB: mib('VmHWM') };
}

/** Linux counts these times in hundredths of a second on every machine. */
const tickMs = 10;

/** Returns the processor time of a process since its start in milliseconds, in user and kernel mode. */
export function processorMs(pid: number): number {
  const [user = Number.NaN, kernel = Number.NaN] = processorTimes(pid);
  return user + kernel;
}

/** Returns the processor time of all ended children of this process in milliseconds. */
export function endedChildrenMs(): number {
  const [, , user = Number.NaN, kernel = Number.NaN] = processorTimes(process.pid);
  return user + kernel;
}

/** Returns the times of a process in user and kernel mode, then those of its ended children, in milliseconds. */
function processorTimes(pid: number): readonly number[] {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  // The second field is the name in parentheses, which may contain spaces.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return fields.slice(11, 15).map((ticks) => Number(ticks) * tickMs);
}

/** Returns the memory of an idle Node.js process. */
export async function bareNodeMemory(): Promise<Memory> {
  const child: ChildProcess = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1e6); process.stdout.write("up")'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  try {
    if (child.pid === undefined || child.stdout === null) throw new Error('Node.js could not be started');
    await once(child.stdout, 'data');
    await delay(500);
    return memoryOf(child.pid);
  } finally {
    child.kill('SIGKILL');
  }
}
