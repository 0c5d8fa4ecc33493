// Queries of PhasedRollouts: any series is a success there, so here the series are counted.

interface CountedQuery {
  /** One number while there is a series, nothing otherwise. Empty when the expression is. */
  readonly query: string;
  /** The expression has a comment, which the original makes of everything behind it. */
  readonly hasComment: boolean;
  /** The expression has no comparison, so it returns a series for every value. */
  readonly isAlwaysTrue: boolean;
}

/**
 * The query that gives the number of series of a PromQL expression, without its comments and on one line. A range vector cannot be counted, so
 * that its last samples are. This reads no grammar: what Prometheus refuses it refuses still.
 */
export function countedQuery(expression: string): CountedQuery {
  const { text, bare, hasComment } = onOneLine(expression);
  const isRange = /\]\s*(?:(?:offset|@)\s*\S+\s*)*$/i.test(bare);
  const query = text === '' ? '' : `count(${isRange ? `last_over_time(${text})` : text})`;
  return { query, hasComment, isAlwaysTrue: comparesNothing(bare) };
}

function comparesNothing(bare: string): boolean {
  const outside = bare.replace(/\{[^}]*\}/g, '');
  return /(?:[=!]=|[<>]=?)\s*bool\b/i.test(outside) || !/[=!]=|[<>]|\babsent|\bunless\b/i.test(outside);
}

const quotes: ReadonlySet<string> = new Set(['"', "'", '`']);

/** Blanks become one, except in texts; `bare` has nothing in its texts. */
function onOneLine(expression: string): { readonly text: string; readonly bare: string; readonly hasComment: boolean } {
  let text = '';
  let bare = '';
  let hasComment = false;
  for (let at = 0; at < expression.length; ) {
    const character = expression[at] ?? '';
    if (quotes.has(character)) {
      const end = endOfText(expression, at);
      text += expression.slice(at, end);
      bare += '""';
      at = end;
    } else if (character === '#') {
      hasComment = true;
      const end = expression.indexOf('\n', at);
      at = end < 0 ? expression.length : end;
    } else if (/\s/.test(character)) {
      if (!text.endsWith(' ')) text += ' ';
      bare += ' ';
      at += 1;
    } else {
      text += character;
      bare += character;
      at += 1;
    }
  }
  return { text: text.trim(), bare: bare.trim(), hasComment };
}

/** Returns the index after the closing quote, or the end of the expression. Backquotes have no escapes. */
function endOfText(expression: string, start: number): number {
  const quote = expression[start];
  for (let at = start + 1; at < expression.length; at += 1) {
    if (expression[at] === '\\' && quote !== '`') at += 1;
    else if (expression[at] === quote) return at + 1;
  }
  return expression.length;
}
