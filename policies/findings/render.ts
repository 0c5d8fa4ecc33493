// Findings on a terminal: place and message, the line with a caret under the value, and the fix.
import { type Finding, type Place, placeText, type Severity } from './finding.ts';

/** Adds colour to one part of the text; the plain form leaves it alone. */
type Paint = (part: 'place' | Severity | 'code' | 'caret' | 'hint', text: string) => string;

const plain: Paint = (_part, text) => text;

/** Lines longer than this are cut around the caret. */
const excerptWidth = 110;

/**
 * The text of a finding, several lines without a final line break. Control and bidirectional characters of the file are shown as
 * escapes, so that a policy file cannot control the terminal.
 */
export function renderFinding(finding: Finding, paint: Paint = plain): string {
  const head = [
    paint('place', visible(placeText(finding))),
    paint(finding.severity, finding.severity),
    paint('code', finding.code),
    visible(finding.message),
  ].join(' ');
  const related = (finding.related ?? []).map(
    (source) => `   see ${visible(source.file ? `${source.file}:${source.line ?? 1}:${source.column ?? 1}` : (source.object ?? ''))}`,
  );
  const hint = finding.hint === undefined ? [] : [paint('hint', `   fix: ${visible(finding.hint)}`)];
  return [head, ...renderExcerpt(finding, paint), ...related, ...hint].join('\n');
}

function renderExcerpt(place: Place, paint: Paint): readonly string[] {
  const lines = place.excerpt ?? [];
  const last = lines.at(-1);
  if (!last) return [];
  const width = Math.max(4, String(last.line).length + 1);
  const cut = Math.max(0, place.column - 1 - Math.floor(excerptWidth / 2));
  const shown = (text: string) => visible(text.slice(cut, cut + excerptWidth)).trimEnd();
  const caretStart = visible(last.text.slice(cut, place.column - 1)).length;
  const marked = last.text.slice(place.column - 1, Math.min(place.endColumn ?? place.column, cut + excerptWidth + 1) - 1);
  const caret = '^'.repeat(Math.max(1, visible(marked).length));
  // The line before says nothing when only a part from its middle would be shown.
  const context = cut > 0 ? [last] : lines;
  return [
    ...context.map(({ line, text }) => `${String(line).padStart(width)} | ${shown(text)}`),
    `${' '.repeat(width)} | ${' '.repeat(caretStart)}${paint('caret', caret)}`,
  ].map((text) => text.trimEnd());
}

/** The text with every character that would move the cursor or reorder the line written as an escape; tabs become two blanks. */
function visible(text: string): string {
  return (
    text
      .replaceAll('\t', '  ')
      // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for.
      .replace(/[\u0000-\u001f\u007f-\u009f\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g, (character) => {
        return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
      })
  );
}
