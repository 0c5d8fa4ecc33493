// The simulation with a defect in it: the sources are edited while they are bundled, and never on the disk.
import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { build, type Plugin } from 'esbuild';
import { byFile, type Edit, edited } from './defect.ts';

/** The root of the repository; tests and scripts run there. */
const root = process.cwd();
const usualEntry = 'test/simulation/defects/worker.ts';

/**
 * The simulation as one script for a worker, with the edits made. `entry` is a file from the root. Rejects when an edit does not fit its file, or
 * when a file that is to be edited is no part of the bundle: then the defect would be none.
 */
export async function bundled(edits: readonly Edit[], entry: string = usualEntry): Promise<string> {
  const open = new Set(byFile(edits).keys());
  const { outputFiles } = await build({
    entryPoints: [resolve(root, entry)],
    bundle: true,
    write: false,
    platform: 'node',
    format: 'cjs',
    target: 'node20',
    loader: { '.yaml': 'text', '.css': 'text', '.md': 'text' },
    plugins: [editing(edits, (file) => open.delete(file))],
    logLevel: 'silent',
  });
  if (open.size > 0) throw new Error(`these are no part of the simulation: ${[...open].join(', ')}`);
  const [output] = outputFiles;
  if (output === undefined) throw new Error('nothing was bundled');
  return output.text;
}

/** Only files that are edited pass through it, so that the others are read as fast as ever. */
function editing(edits: readonly Edit[], onEdited: (file: string) => void): Plugin {
  return {
    name: 'defect',
    setup: (setup) => {
      for (const [file, ofFile] of byFile(edits)) {
        const path = resolve(root, file);
        setup.onLoad({ filter: new RegExp(`^${path.replace(/[.*+?^${}()|[\]\\/]/g, '\\$&')}$`) }, async () => {
          const contents = edited(await readFile(path, 'utf8'), ofFile);
          onEdited(file);
          return { contents, loader: 'ts' };
        });
      }
    },
  };
}
