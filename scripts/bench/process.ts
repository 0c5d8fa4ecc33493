// What a process costs, as the kernel counts it.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';

interface Memory {
  readonly residentMiB: number;
  /** The most that was ever resident. */
  readonly peakMiB: number;
}

export function memoryOf(pid: number): Memory {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  const mib = (name: string): number => Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(status)?.[1] ?? Number.NaN) / 1024;
  return { residentMiB: mib('VmRSS'), peakMiB: mib('VmHWM') };
}

/** Linux counts in hundredths of a second, whatever its own clock does. */
const tickMs = 10;

/** Milliseconds on a processor since the start of the process, those of the kernel for it included. */
export function processorMs(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  // The second field is the name in parentheses, which may hold spaces.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) * tickMs;
}

/** The memory of a Node.js that does nothing. */
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
