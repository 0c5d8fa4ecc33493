// Writes, compresses and reads tar archives. The same files give the same bytes: times, owners and the order of files are fixed.
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';

export interface TarFile {
  /** Relative, at most 100 bytes. */
  readonly path: string;
  readonly data: Buffer | string;
  readonly isExecutable?: boolean;
}

/** 26 October 1985, as in packages of npm. Some tools replace the year 1970 by the current time. */
const modifiedSeconds = 499_162_500;
const blockBytes = 512;

/** Returns an archive of the files and of the folders that contain them, all owned by root. */
export function tar(files: readonly TarFile[]): Buffer {
  const folders = new Set(
    files.flatMap(({ path }) =>
      path
        .split('/')
        .slice(1)
        .map((_, index) => path.split('/', index + 1).join('/')),
    ),
  );
  const entries = [...[...folders].map((path) => ({ path: `${path}/`, data: undefined })), ...files];
  const blocks = entries
    .sort((a, b) => (a.path < b.path ? -1 : 1))
    .flatMap((entry) => {
      if (entry.data === undefined) return [header(entry.path, 0o755, 0)];
      const data = Buffer.from(entry.data);
      const padding = Buffer.alloc(-data.length & (blockBytes - 1));
      return [header(entry.path, entry.isExecutable === true ? 0o755 : 0o644, data.length), data, padding];
    });
  return Buffer.concat([...blocks, Buffer.alloc(2 * blockBytes)]);
}

/** Returns the block in front of a file or a folder, in the format ustar. The path of a folder ends in a slash. */
function header(path: string, mode: number, bytes: number): Buffer {
  const block = Buffer.alloc(blockBytes);
  if (Buffer.byteLength(path) > 100) throw new Error(`${path} has more than 100 bytes`);
  const octal = (value: number, length: number) => `${value.toString(8).padStart(length - 1, '0')}\0`;
  const fields: readonly (readonly [offset: number, text: string])[] = [
    [0, path],
    [100, octal(mode, 8)],
    [108, octal(0, 8)],
    [116, octal(0, 8)],
    [124, octal(bytes, 12)],
    [136, octal(modifiedSeconds, 12)],
    // The checksum is computed as if its own field had blanks.
    [148, ' '.repeat(8)],
    [156, path.endsWith('/') ? '5' : '0'],
    [257, 'ustar\x0000'],
  ];
  for (const [offset, text] of fields) block.write(text, offset, 'latin1');
  block.write(
    `${octal(
      block.reduce((sum, byte) => sum + byte, 0),
      7,
    )} `,
    148,
    'latin1',
  );
  return block;
}

/** Level 9 takes three times as long as level 6, and saves 0.7 % of Node.js. */
export function compress(data: Buffer): Promise<Buffer> {
  return promisify(gzip)(data, { level: 6 });
}

/** Returns the files of an archive that `tar` wrote, or another archive in the format ustar. Throws Error for anything else. */
export function untar(archive: Buffer): readonly { readonly path: string; readonly data: Buffer }[] {
  const files: { readonly path: string; readonly data: Buffer }[] = [];
  for (let at = 0; ; ) {
    const block = archive.subarray(at, at + blockBytes);
    if (block.length < blockBytes) throw new Error('the archive ends in the middle of a file');
    // Two empty blocks end an archive.
    if (block.every((byte) => byte === 0)) return files;
    const text = (offset: number, length: number): string => block.toString('latin1', offset, offset + length).replace(/\0.*$/s, '');
    const bytes = Number.parseInt(text(124, 12), 8);
    if (text(257, 5) !== 'ustar' || !(bytes >= 0)) throw new Error('it is not a tar archive');
    at += blockBytes;
    const data = archive.subarray(at, at + bytes);
    if (data.length < bytes) throw new Error('the archive ends in the middle of a file');
    if (text(156, 1) === '0') files.push({ path: text(0, 100), data });
    at += Math.ceil(bytes / blockBytes) * blockBytes;
  }
}
